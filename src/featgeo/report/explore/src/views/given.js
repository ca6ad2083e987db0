// Before and after functions of the given columns are taken off: what is left, and what vanishes.
import { scaleLinear } from "d3-scale";
import { html } from "htm/preact";
import { compact } from "../axis.js";
import { columns, data, isFound, nPairs, pairs } from "../data.js";
import { BottomAxis, sideNames } from "../figures/frame.js";
import { count, fitted, pvalue, strength, textWidth } from "../format.js";
import { Code, ColumnLink, Figure, PairLink, Table, literal, loading, useWidth } from "../parts.js";

const FIRST = 24; // pairs that are drawn

/** @param {number} k */
const left = (k) => (pairs.qvalue_given[k] ?? 1) <= data.rate;

export function Given() {
  if (!data.given.length) {
    return html`<h1 tabindex="-1">Given columns</h1>
      <p>No columns were given. Name controls, and each pair is shown before and after their functions are taken off both.</p>
      <${Code} lines=${["import featgeo as fg", "", `found = fg.explore(table, given=[${literal(columns[data.order[0] ?? 0].name)}])`, "found.pairs"]} />`;
  }
  const known = [...Array(nPairs).keys()].filter((k) => pairs.strength_given[k] !== null);
  const groups = /** @type {[string, string, number[]][]} */ ([
    ["vanished", "Depended before, and may be chance given the controls", known.filter((k) => isFound(k) && !left(k))],
    ["remain", "Depend before and after", known.filter((k) => isFound(k) && left(k))],
    ["appeared", "Depend only given the controls", known.filter((k) => !isFound(k) && left(k))],
  ]);
  const neither = known.length - groups.reduce((sum, group) => sum + group[2].length, 0);
  return html`
    <h1 tabindex="-1">Given ${data.given.map((i, n) => html`${n ? ", " : ""}<${ColumnLink} column=${i} />`)}</h1>
    <p class="lead">Each pair of columns as it is, and once all that functions of the given columns say of either is taken off. What vanishes may
      come from them; what appears was hidden by them.</p>
    <dl class="facts">
      ${groups.map(([key, , some]) => html`<div><dt>${key}</dt><dd>${count(some.length)}</dd></div>`)}
      <div><dt>neither before nor after</dt><dd>${count(neither)}</dd></div>
    </dl>
    ${groups.map(([key, title, some]) => some.length ? html`<${Group} key=${key} id=${key} title=${title} pairs=${some} />` : null)}
    <section aria-labelledby="python"><h2 id="python">The same in Python</h2>
      <${Code} lines=${[...loading(), 'found.pairs.to_frame()[["a", "b", "strength", "strength_given", "qvalue_given"]]']} /></section>
  `;
}

/** @param {{id: string, title: string, pairs: number[]}} props */
function Group({ id, title, pairs: some }) {
  const order = [...some].sort((k, l) => Math.abs(pairs.strength[l] - pairs.strength_given[l]) - Math.abs(pairs.strength[k] - pairs.strength_given[k]));
  const table = () => html`<${Table} caption=${title} numbers=${4} heads=${["pair", "strength", "given", "p", "p given"]}
    rows=${order.map((k) => [html`<${PairLink} a=${pairs.a[k]} b=${pairs.b[k]} most=${28} />`, strength(pairs.strength[k]), strength(pairs.strength_given[k]), pvalue(pairs.pvalue[k]), pvalue(pairs.pvalue_given[k])])} />`;
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${title} <small>${count(some.length)}</small></h2>
    <${Figure} label=${`Strength before and after, of ${Math.min(order.length, FIRST)} pairs; those that change most first`} table=${table}
      caption=${order.length > FIRST ? `The ${FIRST} that change most.` : "Those that change most first."}>
      <${Dumbbells} pairs=${order.slice(0, FIRST)} />
    <//>
  </section>`;
}

/** Two names in one line. @param {string} a @param {string} b @param {number} room pixels */
function beside(a, b, room) {
  const both = `${a} × ${b}`;
  const half = (room - textWidth(" × ")) / 2;
  return textWidth(both) <= room ? both : `${fitted(a, half)} × ${fitted(b, half)}`;
}

/** @param {{pairs: number[]}} props */
function Dumbbells({ pairs: some }) {
  const [ref, width] = useWidth("given Dumbbells");
  const isNarrow = width < 500;
  const named = some.map((k) => [columns[pairs.a[k]].name, columns[pairs.b[k]].name]);
  const { room: names } = sideNames(isNarrow ? named.flat() : named.map(([a, b]) => `${a} × ${b}`), width);
  const x = scaleLinear([0, 1], [names + 12, Math.max(width - 16, names + 60)]);
  const step = isNarrow ? 34 : 24;
  const height = some.length * step + 30;
  return html`<div ref=${ref} class="drawing">${width ? html`<svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${some.map((k, i) => {
      const y = i * step + step / 2;
      const [from, to] = [x(Math.max(pairs.strength[k], 0)), x(Math.max(pairs.strength_given[k], 0))];
      const [a, b] = named[i];
      return html`<g key=${k}>
        ${isNarrow
          ? html`<text class="label" x=${names} y=${y - 3} text-anchor="end">${fitted(a, names)}</text><text class="label" x=${names} y=${y + 11} text-anchor="end">${fitted(b, names)}</text>`
          : html`<text class="label" x=${names} y=${y + 4} text-anchor="end">${beside(a, b, names)}</text>`}
        <line class="move" x1=${from} x2=${to} y1=${y} y2=${y} />
        <circle class=${isFound(k) ? "before" : "before chance"} cx=${from} cy=${y} r="5" />
        <circle class=${left(k) ? "after" : "after chance"} cx=${to} cy=${y} r="5" />
      </g>`;
    })}
    <${BottomAxis} ticks=${x.ticks(isNarrow ? 3 : 6).map((value) => ({ at: x(value), text: compact(value) }))} y=${height - 24} from=${names + 12} to=${Math.max(width - 16, names + 60)} />
  </svg>` : null}
  <p class="legend"><span><span class="key before"></span> before</span> <span><span class="key after"></span> given the controls</span> <span><span class="key hollow"></span> may be chance</span></p></div>`;
}
