// What the table is, what to know before it is used, and what depends most.
import { html } from "htm/preact";
import { useRef } from "preact/hooks";
import { CLASSIC, columns, data, originalOf } from "../data.js";
import { count, percent, short, strength } from "../format.js";
import { ColumnLink, Meter, Name, PairLink, sentence, useLater, useSteps } from "../parts.js";
import { href } from "../route.js";

const KINDS = /** @type {const} */ (["number", "label", "date"]);

export function Overview() {
  const own = columns.filter((column) => column.original !== undefined);
  const { found, pairs, strongest, missed } = data.findings;
  const cells = own.reduce((sum, column) => sum + (column.missing ?? 0), 0);
  const isLater = useLater();
  const kinds = KINDS.map((kind) => ({ kind, n: own.filter((column) => column.kind === kind).length })).filter(({ n }) => n);
  return html`
    <h1 tabindex="-1"><bdi>${data.title}</bdi></h1>
    <dl class="facts">
      <div><dt>rows</dt><dd>${count(data.rows)}</dd></div>
      <div><dt>columns</dt><dd>${count(own.length)} <small>${kinds.map(({ kind, n }) => `${n} ${n === 1 ? kind : `${kind}s`}`).join(", ")}</small></dd></div>
      <div><dt>missing</dt><dd>${cells ? html`${percent(cells / Math.max(data.rows * own.length, 1), 1)} <small>of all values</small>` : "none"}</dd></div>
      <div><dt>pairs that depend</dt><dd>${count(found)} <small>of ${count(pairs)}, at a false-discovery rate of ${percent(data.rate)}</small></dd></div>
      ${data.target === null ? null : html`<div><dt>target</dt><dd class="word"><a href=${href("target")}><${Name} column=${data.target} /></a></dd></div>`}
      ${data.given.length ? html`<div><dt>given</dt><dd class="word"><a href=${href("given")}>${data.given.map((i, n) => html`${n ? ", " : ""}<${Name} column=${i} />`)}</a></dd></div>` : null}
    </dl>
    <section aria-labelledby="strongest">
      <h2 id="strongest">Strongest dependences</h2>
      <p class="aside">Strengths go from 0, none, to 1, where something about the one is certain once the other is known; the grey end of a bar is its ${percent(data.confidence)} interval.
        “a tells 40% of b”: so much of the variance of b, of its ranks or its labels, is known once a is.</p>
      <${Findings} some=${strongest} wide=${true} none="No pair depends beyond what chance gives." />
      ${found > strongest.length ? html`<p class="onward"><a href=${href("matrix")}>All ${count(pairs)} pairs</a></p>` : null}
    </section>
    <div class="columns-two">
      <section aria-labelledby="missed">
        <h2 id="missed">What Pearson misses</h2>
        <${Findings} some=${missed} beside=${true} none="No pair of numbers depends strongly while its Pearson correlation is small." />
      </section>
      <section aria-labelledby="alerts">
        <h2 id="alerts">Before you use this table</h2>
        ${data.alerts.length ? html`<${Alerts} />` : html`<p>Nothing stands out.</p>`}
      </section>
    </div>
    <section aria-labelledby="columns">
      <h2 id="columns">Columns</h2>
      ${isLater ? html`<${ColumnsTable} most=${AT_ONCE} />` : null}
      ${own.length > AT_ONCE ? html`<p class="onward"><a href=${href("column")}>All ${count(own.length)} columns</a></p>` : null}
    </section>
  `;
}

const FIRST_ALERTS = 12;

function Alerts() {
  const item = (/** @type {string} */ alert) => html`<li>${sentence(alert)}</li>`;
  const rest = data.alerts.slice(FIRST_ALERTS);
  return html`<ul class="alerts">${data.alerts.slice(0, FIRST_ALERTS).map(item)}</ul>
    ${rest.length ? html`<details><summary>${rest.length} more</summary><ul class="alerts">${rest.map(item)}</ul></details>` : null}`;
}

/** Pairs in words. @param {{some: import("../data.js").Finding[], none: string, wide?: boolean, beside?: boolean}} props `beside` the usual coefficient */
function Findings({ some, none, wide = false, beside = false }) {
  if (!some.length) return html`<p>${none}</p>`;
  return html`<ol class=${wide ? "findings wide" : "findings"}>
    ${some.map((one) => html`<li key=${`${one.a}/${one.b}`}>
      <div class="head"><${PairLink} a=${one.a} b=${one.b} /><span class="value">${strength(one.strength)}</span></div>
      <${Meter} value=${one.strength} low=${one.low} high=${one.high} />
      <p class="said">
        ${one.words.length > 1 ? sentence(one.words.slice(1, 3).join(" ")) : `Strength ${strength(one.low)} to ${strength(one.high)}.`}
        ${beside ? ` ${CLASSIC[one.classic_kind]} is ${strength(one.classic)}.` : ""}
      </p>
    </li>`)}
  </ol>`;
}

const AT_ONCE = 40; // rows of a table

/** What columns are, what is missing, and their strongest partner. @param {{most?: number}} props */
export function ColumnsTable({ most = Infinity }) {
  const own = columns.map((_, i) => i).filter((i) => columns[i].original !== undefined);
  const shown = useSteps(Math.min(own.length, most), AT_ONCE);
  const rows = useRef(/** @type {any[]} */ ([])); // as they were made: what is there already need not be compared
  while (rows.current.length < Math.min(shown, own.length)) rows.current.push(html`<${ColumnRow} key=${rows.current.length} i=${own[rows.current.length]} />`);
  return html`<div class="scroll tall" tabindex="0" role="group" aria-label="Columns">
    <table class="columns-table">
      <caption class="unseen">Columns of the table</caption>
      <thead>
        <tr><th scope="col">column</th><th scope="col">read as</th><th scope="col" class="number">distinct</th><th scope="col" class="number">missing</th>
          <th scope="col">strongest partner</th><th scope="col" class="number">strength</th><th scope="col" class="number">partners</th></tr>
      </thead>
      <tbody>${rows.current}</tbody>
    </table>
  </div>`;
}

/** @param {{i: number}} props */
function ColumnRow({ i }) {
  const column = columns[i];
  return html`<tr>
    <th scope="row"><${ColumnLink} column=${i} most=${48} /></th>
    <td>${column.kind} <small>${short(originalOf(column), 18, "")}</small>${column.aside ? html` <span class="tag">set aside: ${column.aside}</span>` : null}</td>
    <td class="number">${column.distinct_exact === false ? "≥ " : ""}${count(column.distinct)}</td>
    <td class="number">${column.missing ? percent(column.missing_share, 1) : "0"}</td>
    <td>${column.strongest_partner === null ? "–" : html`<a href=${href("pair", i, column.strongest_partner)}><${Name} column=${column.strongest_partner} most=${40} /></a>`}</td>
    <td class="number">${strength(column.strength)}</td>
    <td class="number">${count(column.n_partners)}</td>
  </tr>`;
}
