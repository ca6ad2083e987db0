// Two columns in full.
import { signal } from "@preact/signals";
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { isListed } from "../axis.js";
import { axisModes } from "../axis_switch.js";
import { CLASSIC, columns, data, detailOf, isFound, nDetails, nPairs, pairOf, pairs } from "../data.js";
import { FunctionFigure, pointsOf } from "../figures/functions.js";
import { GivenFigure } from "../figures/given.js";
import { RegionsTable } from "../figures/regions.js";
import { count, number, percent, pvalue, short, strength } from "../format.js";
import { ChanceNote, Code, ColumnLink, Folded, Meter, Name, Weekdays, literal, loading, sentence, useLater } from "../parts.js";
import { go, href } from "../route.js";

const AT_ONCE = 2; // modes that are drawn without being asked for

/** The pair that was looked at last. */
export const lastPair = signal(0);

/** @param {{names: number[]}} props */
export function Pair({ names }) {
  const k = names.length === 2 ? pairOf(names[0], names[1]) : -1;
  const isLater = useLater();
  if (k < 0) {
    return html`<h1 tabindex="-1">A pair of columns</h1>
      ${nPairs ? html`<p>Choose two columns.</p><${Chooser} a=${pairs.a[0]} b=${pairs.b[0]} />` : html`<p>This table has no two columns that vary.</p>`}`;
  }
  const detail = detailOf(k);
  const [a, b] = [pairs.a[k], pairs.b[k]];
  return html`
    <h1 tabindex="-1" class="pair-title"><${ColumnLink} column=${a} /> <span class="times">×</span> <${ColumnLink} column=${b} /></h1>
    <${Chooser} a=${a} b=${b} />
    ${isFound(k) ? null : html`<${ChanceNote} />`}
    ${detail ? html`<p class="lead">${sentence(detail.words.join(" "))}</p>` : null}
    <${Weekdays} some=${[a, b]} />
    <${Facts} k=${k} />
    <${Folded} summary="What these numbers mean">${() => html`<${Meanings} />`}<//>
    ${detail ? html`<${Drawings} key=${k} k=${k} detail=${detail} />` : html`<p class="note" role="note">
      So that this page stays small, it holds the functions of ${count(nDetails())} pairs, the most telling ones.
      The lines below give those of this pair.</p>`}
    ${isLater ? html`<${Lines} a=${columns[a].name} b=${columns[b].name} />` : null}
  `;
}

/** @param {{a: string, b: string}} props */
const Lines = ({ a, b }) => html`<section aria-labelledby="python">
  <h2 id="python">The same in Python</h2>
  <${Code} lines=${[...loading(), `pair = found.pair(${literal(a)}, ${literal(b)})`, "pair.modes, pair.functions(), pair.regions", `pair.given(${literal(a)}).to_frame()`]} />
</section>`;

/** @param {{a: number, b: number}} props */
function Chooser({ a, b }) {
  const choose = (/** @type {number} */ first, /** @type {number} */ second) => pairOf(first, second) >= 0 && go(href("pair", first, second));
  const [isAsked, setAsked] = useState(false); // hundreds of names are listed once somebody comes near
  const names = isAsked ? [...data.order].sort((i, j) => i - j) : null;
  const options = (/** @type {number} */ own, /** @type {number} */ other) => (names ?? [own]).map((i) => html`<option key=${i} value=${i} disabled=${pairOf(i, other) < 0}>${short(columns[i].name, 50)}</option>`);
  return html`<div class="controls" onFocusIn=${() => setAsked(true)} onPointerEnter=${() => setAsked(true)}>
    <label>First column <select value=${a} onChange=${(/** @type {any} */ event) => choose(Number(event.target.value), b)}>${options(a, b)}</select></label>
    <label>Second column <select value=${b} onChange=${(/** @type {any} */ event) => choose(a, Number(event.target.value))}>${options(b, a)}</select></label>
  </div>`;
}

/** @param {{k: number}} props */
function Facts({ k }) {
  const one = (/** @type {string} */ name) => pairs[name][k];
  const level = percent(data.confidence);
  return html`<dl class="facts numbers">
    <div class="wide"><dt>strength on held-out rows</dt><dd data-name="strength" data-value=${one("strength")}>${strength(one("strength"))} <small>${level} interval ${strength(one("low"))} to ${strength(one("high"))}</small><${Meter} value=${one("strength")} low=${one("low")} high=${one("high")} found=${isFound(k)} /></dd></div>
    <div><dt>p-value of independence</dt><dd data-name="pvalue" data-value=${one("pvalue")}>${pvalue(one("pvalue"))} <small>q ${pvalue(one("qvalue"))}</small></dd></div>
    <div><dt>${CLASSIC[pairs.classic_kind[k]]}</dt><dd data-name="classic" data-value=${one("classic")}>${strength(one("classic"))}</dd></div>
    <div><dt>modes supported</dt><dd data-name="n_modes" data-value=${one("n_modes")}>${one("n_modes")}</dd></div>
    <div><dt>mutual information</dt><dd data-name="mutual_information" data-value=${one("mutual_information")}>${number(one("mutual_information"))} <small>nats</small></dd></div>
    <div><dt><${Name} column=${pairs.a[k]} most=${30} /> tells of <${Name} column=${pairs.b[k]} most=${30} /></dt><dd data-name="b_from_a" data-value=${one("b_from_a")}>${percent(Math.max(one("b_from_a"), 0))}</dd></div>
    <div><dt><${Name} column=${pairs.b[k]} most=${30} /> tells of <${Name} column=${pairs.a[k]} most=${30} /></dt><dd data-name="a_from_b" data-value=${one("a_from_b")}>${percent(Math.max(one("a_from_b"), 0))}</dd></div>
    <div><dt>rows that have both</dt><dd data-name="rows" data-value=${one("rows")}>${count(one("rows"))} <small>of ${count(data.rows)}</small></dd></div>
    ${data.given.length && one("strength_given") !== null ? html`<div><dt>strength given ${data.given.map((i, n) => html`${n ? ", " : ""}<${Name} column=${i} most=${30} />`)}</dt><dd data-name="strength_given" data-value=${one("strength_given")}>${strength(one("strength_given"))} <small>p ${pvalue(one("pvalue_given"))}</small></dd></div>` : null}
  </dl>`;
}

/** @type {[string, string][]} */
const MEANINGS = [
  ["strength", "How well the best function of one column follows the best function of the other, on rows that did not choose these functions: 0 is not at all, 1 is always; less than 0 is chance, functions that held-out rows speak against. It sees any shape of dependence, not lines alone."],
  ["interval", `With more and more rows of the same kind the strength would end in here, in ${percent(data.confidence)} of tables like this one.`],
  ["p-value", "How often independent columns would look at least as dependent. q counts that many pairs were looked at: of all pairs with a q of 5% or less, about 5% are false."],
  ["Pearson’s r, Cramér’s V, correlation ratio", "The usual coefficients: of numbers along a line, of labels, and of numbers by labels."],
  ["modes", "In how many ways at once the two depend on each other, as far as held-out rows support."],
  ["mutual information", "How much one says of the other in all, in natural units; 0.69 nats are one bit, the answer to one question of yes or no."],
  ["a tells of b", "Share of the variance of b that is known once a is: of its ranks where it is a number or a date, of the indicators of its labels where it has labels."],
];

const Meanings = () => html`<dl class="meanings">${MEANINGS.map(([name, text]) => html`<dt>${name}</dt><dd>${text}</dd>`)}</dl>`;

/** What to know to read the modes. @param {import("../data.js").Column[]} both @param {(column: import("../data.js").Column) => string} mode */
function howToRead(both, mode) {
  const scales = both.filter((column) => !isListed(column)).map(mode);
  const isRanked = scales.some((one) => one === "rank");
  const isShaded = scales.some((one) => one === "value" || one === "log");
  return ["A mode is a function f of one column and a function g of the other: where f is high, g tends to be high.",
    ...(isShaded ? ["Shaded: where the rows are."] : []), ...(isRanked ? ["On ranks, equal widths hold equally many rows."] : []),
    ...(scales.length < 2 ? ["The more rows, the broader the bar."] : [])].join(" ");
}

/** @param {{k: number, detail: import("../data.js").Detail}} props */
function Drawings({ k, detail }) {
  const [a, b] = [columns[pairs.a[k]], columns[pairs.b[k]]];
  const found = isFound(k) && pairs.n_modes[k] > 0;
  const [switches, mode] = axisModes([a, b]);
  const points = [pointsOf(a, detail.points.a), pointsOf(b, detail.points.b)];
  const isLater = useLater();
  const shown = detail.f.map((_, i) => i);
  const one = (/** @type {number} */ i) => html`<${Mode} key=${i} i=${i} detail=${detail} a=${a} b=${b} points=${points} modes=${[mode(a), mode(b)]} found=${found && detail.modes.supported[i]} />`;
  return html`
    ${switches}
    <section aria-labelledby="given-title">
      <h2 id="given-title">One given the other</h2>
      <div class="side-by-side">
        <${GivenFigure} own=${a} other=${b} given=${detail.b_given_a} points=${points[0]} mode=${mode(a)} found=${found} />
        <${GivenFigure} own=${b} other=${a} given=${detail.a_given_b} points=${points[1]} mode=${mode(b)} found=${found} />
      </div>
    </section>
    <section aria-labelledby="modes-title">
      <h2 id="modes-title">Modes</h2>
      <p class="aside">${howToRead([a, b], mode)}</p>
      ${isLater ? shown.slice(0, AT_ONCE).map(one) : null}
      ${isLater && shown.length > AT_ONCE ? html`<${Folded} summary=${`${shown.length - AT_ONCE} more ${shown.length - AT_ONCE === 1 ? "mode" : "modes"}`}>${() => shown.slice(AT_ONCE).map(one)}<//>` : null}
    </section>
    <section aria-labelledby="regions-title">
      <h2 id="regions-title">Observed and expected</h2>
      ${isLater ? html`<${RegionsTable} a=${a.name} b=${b.name} regions=${detail.regions} found=${isFound(k)} />` : null}
    </section>
  `;
}

/** @param {{i: number, detail: import("../data.js").Detail, a: import("../data.js").Column, b: import("../data.js").Column, points: number[][], modes: import("../axis.js").Mode[], found: boolean}} props */
function Mode({ i, detail, a, b, points, modes, found }) {
  const { held_out, low, high } = detail.modes;
  return html`<div class="mode">
    <h3>Mode ${i + 1}: ${found ? html`correlation ${strength(held_out[i])} <small>${strength(low[i])} to ${strength(high[i])}, on held-out rows</small>` : html`may be chance <small>held-out correlation ${strength(held_out[i])}</small>`}</h3>
    <div class="side-by-side">
      <${FunctionFigure} column=${a} values=${detail.f[i]} points=${points[0]} letter="f" mode=${modes[0]} found=${found} />
      <${FunctionFigure} column=${b} values=${detail.g[i]} points=${points[1]} letter="g" mode=${modes[1]} found=${found} />
    </div>
  </div>`;
}
