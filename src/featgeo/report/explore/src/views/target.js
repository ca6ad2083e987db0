// What all columns say of one: alone, beside all others, together; and how few of them say most of it.
import { scaleLinear } from "d3-scale";
import { curveMonotoneX, line } from "d3-shape";
import { html } from "htm/preact";
import { axisModes } from "../axis_switch.js";
import { compact } from "../axis.js";
import { ground } from "../colours.js";
import { columns, data, detailOf, isFound, pairOf, pairs } from "../data.js";
import { BottomAxis, LeftAxis, sideNames } from "../figures/frame.js";
import { pointsOf } from "../figures/functions.js";
import { GivenFigure } from "../figures/given.js";
import { wordWidth } from "../figures/regions.js";
import { number, percent, pvalue, short } from "../format.js";
import { Code, ColumnLink, Figure, Folded, Name, Table, literal, loading, sentence, useWidth } from "../parts.js";
import { href } from "../route.js";
import { dark } from "../scheme.js";

const LEADING = 3; // columns whose effects are drawn
const TOGETHER = 8; // interactions at once; a table has all
const FIRST = 20; // columns of the figure at once

export function Target() {
  if (data.target === null || !data.about_target) {
    return html`<h1 tabindex="-1">Target</h1>
      <p>No target was named. Name the column that matters, and all others are ranked by what they say of it.</p>
      <${Code} lines=${["import featgeo as fg", "", `found = fg.explore(table, target=${literal(columns[data.order[0] ?? 0].name)})`, "found.target"]} />`;
  }
  const about = data.about_target;
  const steps = about.column.map((column, i) => ({ column, i, step: Number(about.step[i]) })).filter((one) => one.step > 0).sort((a, b) => a.step - b.step);
  return html`
    <h1 tabindex="-1">Target: <${Name} column=${data.target} /></h1>
    ${data.given.length ? html`<p class="aside">Given ${data.given.map((i, n) => html`${n ? ", " : ""}<${ColumnLink} column=${i} />`)}: what is said by these is taken off first.</p>` : null}
    <div class="columns-two">
      <${Ranking} about=${about} />
      ${steps.length ? html`<${Forward} about=${about} steps=${steps} />` : html`<p>No column says anything of it on held-out rows.</p>`}
    </div>
    <${Interactions} />
    <${Effects} steps=${steps.slice(0, LEADING).map((one) => one.column)} />
    <section aria-labelledby="python"><h2 id="python">The same in Python</h2>
      <${Code} lines=${[...loading(), "found.target.to_frame()", "found.least_set(0.95)", "found.interactions.to_frame()"]} /></section>
  `;
}

/** @param {{about: NonNullable<typeof data.about_target>}} props */
function Ranking({ about }) {
  const order = about.column.map((_, i) => i).sort((i, j) => Number(about.alone[j]) - Number(about.alone[i]));
  const table = () => html`<${Table} caption="What each column says" numbers=${6} heads=${["column", "alone", "± error", "added to all others", "± error", "p", "q"]}
    rows=${order.map((i) => [html`<${ColumnLink} column=${about.column[i]} most=${40} />`, number(about.alone[i]), number(about.alone_error[i], 2), number(about.added[i]), number(about.added_error[i], 2), pvalue(about.pvalue[i]), pvalue(about.qvalue[i])])} />`;
  const first = order[0];
  const label = order.length ? `What each of ${order.length} columns says of the target. Most alone: ${short(columns[about.column[first]].name, 40)}, ${number(about.alone[first])}` : "No columns";
  return html`<section aria-labelledby="alone">
    <h2 id="alone">Alone, and added to all others</h2>
    <${Figure} label=${label} table=${table} caption="What a column says of the target: the sum of the squared correlations of its functions with those of the target, on held-out rows; 0 is nothing. That a value is missing may say something too. Whiskers: two standard errors. Grey: may be chance.">
      <${Dumbbells} about=${about} order=${order.slice(0, FIRST)} />
    <//>
    ${order.length > FIRST ? html`<p class="aside">${order.length - FIRST} more columns are in the table.</p>` : null}
  </section>`;
}

/** Whether what a column says alone is no chance. @param {number} column */
function saysAlone(column) {
  const k = pairOf(column, /** @type {number} */ (data.target));
  return k >= 0 && (data.given.length ? (pairs.qvalue_given[k] ?? 1) <= data.rate : isFound(k));
}

/** @param {{about: NonNullable<typeof data.about_target>, order: number[]}} props */
function Dumbbells({ about, order }) {
  const [ref, width] = useWidth("target Dumbbells");
  const { room: names, texts } = sideNames(order.map((i) => columns[about.column[i]].name), width);
  const ends = order.flatMap((i) => [Number(about.alone[i]) + 2 * Number(about.alone_error[i]), Number(about.added[i]) + 2 * Number(about.added_error[i])]);
  const top = Math.max(...ends, 1e-6);
  const x = scaleLinear([0, top], [names + 12, Math.max(width - 14, names + 60)]).nice(4);
  const step = 30;
  const height = order.length * step + 30;
  const at = (/** @type {number} */ value) => x(Math.max(value, 0));
  return html`<div ref=${ref} class="drawing">${width ? html`<svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${order.map((i, place) => {
      const y = place * step + step / 2;
      const [alone, added, errors] = [Number(about.alone[i]), Number(about.added[i]), [Number(about.alone_error[i]), Number(about.added_error[i])]];
      const chance = [saysAlone(about.column[i]), Number(about.qvalue[i]) <= data.rate && added > 0].map((isSure) => (isSure ? "" : "chance"));
      return html`<g key=${i}>
        <text class="label" x=${names} y=${y + 4} text-anchor="end">${texts[place]}</text>
        <rect class=${`alone ${chance[0]}`} x=${x(0)} width=${Math.max(at(alone) - x(0), 1)} y=${y - 9} height="9" />
        <line class=${`whisker ${chance[0]}`} x1=${at(alone - 2 * errors[0])} x2=${at(alone + 2 * errors[0])} y1=${y - 4.5} y2=${y - 4.5} />
        <rect class=${`added ${chance[1]}`} x=${x(0)} width=${Math.max(at(added) - x(0), 1)} y=${y + 1.5} height="7" />
        <line class=${`whisker ${chance[1]}`} x1=${at(added - 2 * errors[1])} x2=${at(added + 2 * errors[1])} y1=${y + 5} y2=${y + 5} />
      </g>`;
    })}
    <${BottomAxis} ticks=${x.ticks(4).map((value) => ({ at: x(value), text: compact(value) }))} y=${height - 24} from=${names + 12} to=${Math.max(width - 14, names + 60)} />
  </svg>` : null}
  <p class="legend"><span><span class="key alone"></span> alone</span> <span><span class="key added"></span> added to all others</span> <span><span class="key chance-bar"></span> may be chance</span></p></div>`;
}

/** @param {{about: NonNullable<typeof data.about_target>, steps: {column: number, i: number, step: number}[]}} props */
function Forward({ about, steps }) {
  const [ref, width] = useWidth("target Forward");
  const held = steps.map((one) => Number(about.held[one.i]));
  const height = 230;
  const x = scaleLinear([1, Math.max(steps.length, 2)], [48, Math.max(width - 16, 80)]);
  const y = scaleLinear([0, 1], [height - 26, 10]);
  const path = line((/** @type {any} */ _, i) => x(i + 1), (/** @type {any} */ value) => y(value)).curve(curveMonotoneX)(held);
  const enough = held.findIndex((share) => share >= 0.95) + 1;
  const ticks = [...new Set(x.ticks(Math.min(steps.length, 8)).map(Math.round))].filter((n) => n >= 1 && n <= steps.length);
  const table = () => html`<${Table} caption="Columns in the order found" numbers=${2} heads=${["column", "step", "held so far"]} rows=${steps.map((one, i) => [html`<${ColumnLink} column=${one.column} />`, one.step, percent(held[i], 1)])} />`;
  return html`<section aria-labelledby="few">
    <h2 id="few">How few say most of it</h2>
    <${Figure} label=${`Share held by the best 1 to ${steps.length} columns: ${held.slice(0, 6).map((share) => percent(share)).join(", ")}`} table=${table}
      caption=${`How much the best 1, 2, 3 … columns say together, as a share of what all ${steps.length} that the search found say, on held-out rows.${enough ? ` ${enough === 1 ? "The first alone holds" : `The first ${enough} hold`} 95%.` : ""}`}>
      <div ref=${ref} class="drawing">${width ? html`<svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
        <${LeftAxis} ticks=${[0, 0.25, 0.5, 0.75, 1].map((share) => ({ at: y(share), text: percent(share) }))} x=${44} to=${width - 10} />
        <path class="curve" d=${path} />
        ${held.length <= 60 ? held.map((share, i) => html`<circle class="dot" cx=${x(i + 1)} cy=${y(share)} r="3.2" />`) : null}
        <${BottomAxis} ticks=${ticks.map((n) => ({ at: x(n), text: String(n) }))} y=${height - 26} from=${44} to=${width - 10} />
      </svg>` : null}</div>
    <//>
    <ol class="steps">${steps.slice(0, 8).map((one, i) => html`<li key=${one.column}><${ColumnLink} column=${one.column} most=${40} /> <span class="number">${percent(held[i])}</span></li>`)}</ol>
  </section>`;
}

function Interactions() {
  const found = data.interactions.filter((one) => one.qvalue <= data.rate);
  const rows = data.interactions.map((one) => [html`<${Name} column=${one.a} most=${30} /> × <${Name} column=${one.b} most=${30} />`, one.qvalue <= data.rate ? sentence(one.where) : "may be chance", number(one.energy), pvalue(one.pvalue), pvalue(one.qvalue)]);
  return html`<section aria-labelledby="together">
    <h2 id="together">What two columns say only together</h2>
    ${found.length ? html`<p class="aside">Beyond what the two say beside each other: where it is most, and how much it is in all, in the unit of the figure above.</p>` : null}
    ${found.length
      ? found.slice(0, TOGETHER).map((one) => html`<${Interaction} key=${`${one.a}/${one.b}`} one=${one} />`)
      : html`<p>No two columns say more together than beside each other, beyond what chance gives.</p>`}
    ${data.interactions.length ? html`<${Folded} summary=${`All ${data.interactions.length} that were looked at closely, ${found.length} of them beyond chance`}>${() => html`<${Table} caption="Interactions" numbers=${3} heads=${["columns", "where most", "in all", "p", "q"]} rows=${rows} />`}<//>` : null}
  </section>`;
}

/** @param {{one: import("../data.js").Interaction}} props */
function Interaction({ one }) {
  const k = pairOf(one.a, one.b);
  const title = html`<${Name} column=${one.a} most=${40} /> × <${Name} column=${one.b} most=${40} />`;
  return html`<${Folded} summary=${html`<strong>${title}</strong> <span class="where">${sentence(one.where)}</span> <small>${one.energy > 0 ? `in all ${number(one.energy, 2)}` : "too little in all for held-out rows to measure"}, q ${pvalue(one.qvalue)}</small>`}>
    ${() => html`${k >= 0 ? html`<p><a href=${href("pair", one.a, one.b)}>How the two depend on each other</a></p>` : null}
      ${one.cells ? html`<${InteractionCells} one=${one} cells=${one.cells} />` : null}`}
  <//>`;
}

/** @param {{one: import("../data.js").Interaction, cells: NonNullable<import("../data.js").Interaction["cells"]>}} props */
function InteractionCells({ one, cells }) {
  const names = Object.keys(cells.effects);
  const effect = names.find((name) => one.where.includes(`: ${name} `)) ?? names[names.length - 1];
  const [rows, cols] = [unique(cells.a, columns[one.a]), unique(cells.b, columns[one.b])];
  const values = new Map(cells.a.map((a, i) => [JSON.stringify([a, cells.b[i]]), { effect: cells.effects[effect][i], rows: cells.rows[i] }]));
  const top = Math.max(...cells.effects[effect].map(Math.abs), 1e-9);
  return html`<p class="aside">${effect}: what both together add to what they say beside each other.</p>
    <div class="scroll" tabindex="0" role="group" aria-label="Effects in cells of both columns"><table class="regions">
      <caption class="unseen">${effect} in cells of both columns</caption>
      <thead><tr><td style=${{ minWidth: wordWidth(rows) }}></td>${cols.map((b) => html`<th scope="col"><bdi>${sentence(short(b, 22))}</bdi></th>`)}</tr></thead>
      <tbody>${rows.map((a) => html`<tr><th scope="row"><bdi>${sentence(short(a, 26))}</bdi></th>${cols.map((b) => {
        const cell = values.get(JSON.stringify([a, b]));
        return cell ? html`<td style=${{ backgroundColor: ground(cell.effect / top, dark.value) }} title=${`${cell.rows} rows`}>${number(cell.effect, 2)}</td>` : html`<td class="unsure">–</td>`;
      })}</tr>`)}</tbody>
    </table></div>`;
}

/** Names of cells, in the order of their values. @param {string[]} names @param {import("../data.js").Column} column */
function unique(names, column) {
  const own = [...new Set(names)];
  if (column.kind === "label") return own.sort((a, b) => (column.cells?.labels ?? []).indexOf(a) - (column.cells?.labels ?? []).indexOf(b));
  const start = (/** @type {string} */ name) => {
    const first = Number.parseFloat(name.replace(/^(to|over) /, "").replace("−", "-"));
    return name.startsWith("to ") ? -Infinity : name.startsWith("over ") ? first + 1e-9 * Math.abs(first) : first;
  };
  return column.kind === "date" ? own.sort() : own.sort((a, b) => start(a) - start(b));
}

/** @param {{steps: number[]}} props */
function Effects({ steps }) {
  const target = /** @type {number} */ (data.target);
  const shown = steps.map((column) => ({ column, k: pairOf(column, target) })).filter(({ k }) => k >= 0 && detailOf(k));
  if (!shown.length) return null;
  return html`<section aria-labelledby="effects"><h2 id="effects">The target given the leading columns</h2>
    ${data.given.length ? html`<p class="aside">As it is, before what the given columns say is taken off.</p>` : null}
    <div class="side-by-side">${shown.map(({ column, k }) => html`<${Effect} key=${k} column=${column} k=${k} />`)}</div></section>`;
}

/** @param {{column: number, k: number}} props */
function Effect({ column, k }) {
  const detail = /** @type {import("../data.js").Detail} */ (detailOf(k));
  const given = pairs.a[k] === column ? detail.b_given_a : detail.a_given_b;
  const [, mode] = axisModes([columns[column]]);
  const points = pointsOf(columns[column], pairs.a[k] === column ? detail.points.a : detail.points.b);
  return html`<div><${GivenFigure} own=${columns[column]} other=${columns[/** @type {number} */ (data.target)]} given=${given} points=${points} mode=${mode(columns[column])} found=${isFound(k)} />
    <p class="onward"><a href=${href("pair", pairs.a[k], pairs.b[k])}>This pair in full</a></p></div>`;
}
