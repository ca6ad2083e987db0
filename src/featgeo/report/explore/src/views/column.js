// One column, or all of them.
import { html } from "htm/preact";
import { OF_VALUES, axisModes } from "../axis_switch.js";
import { columns, data, isFound, originalOf, otherOf, pairs, pairsOf } from "../data.js";
import { Distribution } from "../figures/functions.js";
import { count, percent, short, strength, valueOf } from "../format.js";
import { Code, ColumnLink, Folded, Meter, Name, Weekdays, literal, loading } from "../parts.js";
import { href, pairHref } from "../route.js";
import { ColumnsTable } from "./overview.js";

const FIRST = 15; // partners at once

/** @param {{names: number[]}} props */
export function Column({ names }) {
  if (!names.length) return html`<h1 tabindex="-1">Columns</h1><${ColumnsTable} />`;
  return html`<${One} key=${names[0]} i=${names[0]} />`;
}

const ASIDE = /** @type {Record<string, string>} */ ({
  empty: "It has no value at all.", constant: "It has one value only.", identifier: "It names its rows, as an identifier does.",
  rare: "No label is shared by enough rows.",
});

/** @param {{i: number}} props */
function One({ i }) {
  const column = columns[i];
  const [switches, mode] = axisModes([column], OF_VALUES);
  const partners = pairsOf(i);
  const found = partners.filter(isFound);
  const chance = partners.length - found.length;
  const missing = column.missing ?? column.cells?.missing ?? 0;
  return html`
    <h1 tabindex="-1"><${Name} column=${i} /></h1>
    <p class="aside onward"><a href=${href("column")}>All columns</a>${column.parent === null || column.parent === undefined ? null : html` · part of <${ColumnLink} column=${column.parent} />`}</p>
    <${Weekdays} some=${[i]} />
    <dl class="facts">
      <div><dt>read as</dt><dd class="word">${column.kind} <small>${short(originalOf(column), 40, "")}</small></dd></div>
      ${column.distinct === undefined ? null : html`<div><dt>distinct values</dt><dd>${column.distinct_exact === false ? "≥ " : ""}${count(column.distinct)}</dd></div>`}
      ${column.cells?.low ? html`<div><dt>range</dt><dd class="word">${valueOf(column, column.cells.low[0])} <small>to</small> ${valueOf(column, column.cells.high?.at(-1))}</dd></div>` : null}
      <div><dt>missing</dt><dd>${missing ? html`${count(missing)} <small>${percent(missing / Math.max(data.rows, 1), 1)}</small>` : "none"}</dd></div>
      <div><dt>depends on</dt><dd>${count(found.length)} <small>of ${count(partners.length)} others</small></dd></div>
    </dl>
    ${column.aside ? html`<p class="note" role="note"><strong>Not compared with others.</strong> ${ASIDE[column.aside] ?? column.aside}</p>` : null}
    <${Redundancy} column=${column} />
    ${column.cells ? html`<div class="columns-two">
      <div>${switches}<${Distribution} column=${column} mode=${mode(column)} /></div>
      <section aria-labelledby="partners">
        <h2 id="partners">Strongest partners</h2>
        ${found.length ? html`<${Partners} column=${i} pairs=${found.slice(0, FIRST)} />` : html`<p>No other column depends on it beyond what chance gives.</p>`}
        ${found.length > FIRST ? html`<${Folded} summary=${`${found.length - FIRST} more`}>${() => html`<${Partners} column=${i} pairs=${found.slice(FIRST)} />`}<//>` : null}
        ${chance ? html`<${Folded} summary=${`${chance} that may be chance`}>${() => html`<${Partners} column=${i} pairs=${partners.filter((k) => !isFound(k))} />`}<//>` : null}
      </section>
    </div>` : null}
    <section aria-labelledby="python">
      <h2 id="python">The same in Python</h2>
      <${Code} lines=${[...loading(), "pairs = found.pairs.to_frame()", `pairs[(pairs.a == ${literal(column.name)}) | (pairs.b == ${literal(column.name)})]`]} />
    </section>
  `;
}

/** What repeats or determines a column, and where it is missing. @param {{column: import("../data.js").Column}} props */
function Redundancy({ column }) {
  const said = [];
  if (column.duplicate_of !== null) said.push(html`It repeats <${ColumnLink} column=${column.duplicate_of} />: each of its values goes with one value there.`);
  if (column.determined_by !== null && column.determined_by !== column.duplicate_of) said.push(html`It follows from <${ColumnLink} column=${column.determined_by} /> nearly always: ${percent(column.determined_share, 1)} of it is known from there, on held-out rows.`);
  if (column.missing_depends_on !== null) said.push(html`Whether it is missing depends on <${ColumnLink} column=${column.missing_depends_on} /> (strength ${strength(column.missing_strength)}).`);
  return said.length ? html`<ul class="alerts">${said.map((one) => html`<li>${one}</li>`)}</ul>` : null;
}

/** @param {{column: number, pairs: number[]}} props */
export const Partners = ({ column, pairs: some }) => html`<ul class="bars partners">
  ${some.map((k) => html`<li key=${k} class=${isFound(k) ? "" : "chance"}>
    <a href=${pairHref(k)}><${Name} column=${otherOf(k, column)} most=${40} /></a>
    <${Meter} value=${pairs.strength[k]} low=${pairs.low[k]} high=${pairs.high[k]} found=${isFound(k)} />
    <span class="number">${strength(pairs.strength[k])}</span>
  </li>`)}
</ul>`;
