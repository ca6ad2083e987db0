// All pairs as a list that sorts: only the rows that can be seen are made, so that there may be any number.
import { signal } from "@preact/signals";
import { html } from "htm/preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { columns, isFound, pairs } from "../data.js";
import { count, fitted, pvalue, short, strength } from "../format.js";
import { Meter, useWidth } from "../parts.js";
import { pairHref } from "../route.js";
import { isPrinting } from "../scheme.js";

const ROW = 44; // pixels, as the style says
const LETTERS = 14.4 / 12; // times as large as in drawings, as the style says
const TIMES = 18; // pixels before the second name
const AROUND = 8; // rows beyond those that can be seen
const PRINTED = 60;

/** @typedef {{key: string, name: string, value: (k: number) => number | string, text: (k: number) => string, up: boolean, from: number}} Head `from`: 1 and 2 are left out where the list is narrow, 3 also where it is as wide as beside the matrix */

/** @type {import("@preact/signals").Signal<{key: string, up: boolean}>} */
const sorting = signal({ key: "strength", up: false });

/** @type {Head[]} */
const HEADS = [
  { key: "pair", name: "pair", value: (k) => columns[pairs.a[k]].name.toLowerCase(), text: () => "", up: true, from: 0 },
  { key: "strength", name: "strength", value: (k) => pairs.strength[k], text: (k) => strength(pairs.strength[k]), up: false, from: 0 },
  { key: "classic", name: "usual", value: (k) => Math.abs(pairs.classic[k] ?? -1), text: (k) => strength(pairs.classic[k]), up: false, from: 0 },
  { key: "pvalue", name: "p", value: (k) => pairs.pvalue[k], text: (k) => pvalue(pairs.pvalue[k]), up: true, from: 1 },
  { key: "rows", name: "rows", value: (k) => pairs.rows[k], text: (k) => count(pairs.rows[k]), up: false, from: 1 },
];

/** @param {number[]} some @param {Head} head @param {boolean} up */
function sorted(some, head, up) {
  if (head.key === "strength" && !up) return some; // as they come
  const values = new Map(some.map((k) => [k, head.value(k)]));
  const order = (/** @type {number} */ k, /** @type {number} */ l) => {
    const [a, b] = [values.get(k) ?? 0, values.get(l) ?? 0];
    return a < b ? -1 : a > b ? 1 : 0;
  };
  return [...some].sort((k, l) => (up ? order(k, l) : order(l, k)) || k - l);
}

/** @param {{pairs: number[], measure: import("../measures.js").Measure}} props */
export function PairList({ pairs: some, measure }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [nameHead, names] = useWidth("list of pairs, names");
  const { key, up } = sorting.value;
  const extra = ["difference", "given"].includes(measure.key)
    ? [{ key: measure.key, name: measure.name, value: (/** @type {number} */ k) => measure.value(k) ?? -9, text: (/** @type {number} */ k) => measure.text(measure.value(k)), up: false, from: 0 }]
    : [];
  const heads = [...HEADS.slice(0, 2), ...extra, ...HEADS.slice(2).map((one, i) => ({ ...one, from: extra.length ? i + 1 : one.from }))];
  const head = heads.find((one) => one.key === key) ?? HEADS[1];
  const order = useMemo(() => sorted(some, head, up), [some, head.key, up]);
  useLayoutEffect(() => {
    setHeight(box.current?.clientHeight || 600);
    if (box.current) box.current.scrollTop = 0;
    setTop(0);
  }, [some, key, up]);
  const first = isPrinting.value ? 0 : Math.min(Math.max(Math.floor(top / ROW) - AROUND, 0), Math.max(order.length - 1, 0));
  const last = isPrinting.value ? PRINTED : Math.min(Math.ceil((top + height) / ROW) + AROUND, order.length);
  const shown = order.slice(first, last);
  const sort = (/** @type {Head} */ one) => (sorting.value = { key: one.key, up: key === one.key ? !up : one.up });
  return html`
    <p class="aside" role="status">${count(order.length)} ${order.length === 1 ? "pair" : "pairs"}${isPrinting.value && order.length > PRINTED ? `, the first ${PRINTED} printed` : ""}</p>
    <div class="list" ref=${box} tabindex="0" role="group" aria-label="List of pairs" onScroll=${(/** @type {any} */ event) => setTop(event.currentTarget.scrollTop)}>
      <table aria-rowcount=${order.length + 1}>
        <caption class="unseen">Pairs of columns</caption>
        <thead>
          <tr aria-rowindex="1">
            ${heads.map((one) => html`<th scope="col" key=${one.key} ref=${one.key === "pair" ? nameHead : undefined} class=${`${one.key === "pair" ? "" : "number"} from-${one.from}`} data-head=${one.key} aria-sort=${one.key === head.key ? (up ? "ascending" : "descending") : undefined}>
              <button type="button" onClick=${() => sort(one)}>${one.name}</button>
            </th>`)}
          </tr>
        </thead>
        <tbody>
          ${first ? html`<tr aria-hidden="true" class="space" style=${{ height: `${first * ROW}px` }}><td colspan="2"></td></tr>` : null}
          ${shown.map((k, i) => html`<${Row} key=${k} k=${k} index=${first + i + 2} heads=${heads} room=${isPrinting.value ? Infinity : names} />`)}
          ${last < order.length && !isPrinting.value ? html`<tr aria-hidden="true" class="space" style=${{ height: `${(order.length - last) * ROW}px` }}><td colspan="2"></td></tr>` : null}
        </tbody>
      </table>
    </div>
  `;
}

/** @param {{k: number, index: number, heads: Head[], room: number}} props pixels that a name may take */
function Row({ k, index, heads, room }) {
  const found = isFound(k);
  const [a, b] = [columns[pairs.a[k]].name, columns[pairs.b[k]].name];
  return html`<tr aria-rowindex=${index} class=${found ? "" : "chance"} data-pair=${k}>
    ${heads.map((head) => head.key === "pair"
      ? html`<th scope="row"><a href=${pairHref(k)} title=${`${short(a, 100)} × ${short(b, 100)}`}><bdi class="name">${fitted(a, room / LETTERS)}</bdi><bdi class="name second">${fitted(b, (room - TIMES) / LETTERS)}</bdi></a></th>`
      : html`<td class=${`number from-${head.from}`} data-name=${head.key} data-value=${head.key === "classic" ? pairs.classic[k] : head.value(k)}>
          ${head.text(k)}${head.key === "strength" ? (found ? html`<${Meter} value=${pairs.strength[k]} low=${pairs.low[k]} high=${pairs.high[k]} />` : html`<small>may be chance</small>`) : null}
        </td>`)}
  </tr>`;
}
