// Pieces that all views are made of. Whatever comes from the data is text, never markup.
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { columns, data, isFound, nPairs, pairs } from "./data.js";
import { count, percent, pvalue, quoted, short, strength } from "./format.js";
import { href } from "./route.js";
import { PAPER, isPrinting } from "./scheme.js";

/** @type {Map<string, number>} widths that drawings of a kind had, so that the next one need not be measured: the browser would have to lay out what is half made */
const widths = new Map();
let screen = innerWidth; // likewise
addEventListener("resize", () => (screen = innerWidth));

const GAP = 32; // pixels between two drawings beside each other, as the style says

/** What a drawing of a kind will be wide: as the last one, or for one of two beside each other as the style says. @param {string} kind */
function likely(kind) {
  const key = `${kind} ${screen}`;
  const known = widths.get(key);
  if (known !== undefined || kind !== "half") return known ?? 0;
  const all = document.getElementById("main")?.clientWidth ?? 0;
  const guess = matchMedia("(min-width: 62rem)").matches ? Math.max(Math.floor((all - GAP) / 2), 0) : all;
  widths.set(key, guess);
  return guess;
}

/** The width that an element has, in pixels. @param {string} kind of drawing @returns {[import("preact").RefObject<HTMLDivElement | null>, number]} */
export function useWidth(kind) {
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(() => likely(kind));
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const measured = (/** @type {number} */ size) => {
      widths.set(`${kind} ${screen}`, Math.floor(size));
      setWidth(Math.floor(size));
    };
    const observer = new ResizeObserver(([entry]) => measured(entry.contentRect.width));
    observer.observe(element);
    if (!width) measured(element.getBoundingClientRect().width);
    return () => observer.disconnect();
  }, []);
  return [ref, isPrinting.value ? Math.min(width, PAPER) : width];
}

/** Whether what comes first has been painted: what stands below it is made only then. */
export function useLater() {
  const [isLater, setLater] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLater(true));
    return () => clearTimeout(timer);
  }, []);
  return isLater;
}

/** How many of some rows to show: the first ones at once, the others step by step, so that none keeps the reader waiting. @param {number} total @param {number} step */
export function useSteps(total, step) {
  const [shown, setShown] = useState(step);
  useEffect(() => {
    const timer = shown < total ? setTimeout(() => setShown(shown + step)) : undefined;
    return () => clearTimeout(timer);
  }, [shown, total]);
  return isPrinting.value ? total : shown;
}

/** A name that may be broken after its points, dashes and underscores, but for those inside numbers, before it is broken anywhere. @param {string} name */
export const breakable = (name) => name.split(/(?<=_)(?=[^_./-])|(?<=[./-])(?=[^_./\-\d])/).flatMap((part, i) => (i ? [html`<wbr />`, part] : part));

/** Words of ours with names of columns and numbers in them: names may be broken as names are, numbers and dates not at all. @param {string} text */
export const sentence = (text) => text.split(/((?<=^|\s)[-−]?\d{1,4}[-.e:]\d\S*)/).map((part, i) => (i % 2 ? html`<span class="whole">${part}</span>` : breakable(part)));

/** The name of a column. @param {{column: number, most?: number}} props */
export const Name = ({ column, most }) =>
  html`<bdi class="name" title=${short(columns[column].name, 200)}>${breakable(short(columns[column].name, most))}</bdi>`;

/** @param {{column: number, most?: number}} props */
export const ColumnLink = ({ column, most }) =>
  html`<a href=${href("column", column)}><${Name} column=${column} most=${most} /></a>`;

/** @param {{a: number, b: number, most?: number}} props */
export const PairLink = ({ a, b, most = 40 }) =>
  html`<a href=${href("pair", a, b)}><${Name} column=${a} most=${most} /> <span class="times">×</span> <${Name} column=${b} most=${most} /></a>`;

/** A table. Cells are texts, or elements of ours. @param {{heads: any[], rows: any[][], caption?: string, numbers?: number}} props `numbers` columns at the end are aligned to the right */
export const Table = ({ heads, rows, caption, numbers = 0 }) => html`
  <div class="scroll" tabindex="0" role="group" aria-label=${caption ?? "Table"}>
    <table>
      ${caption ? html`<caption class="unseen">${caption}</caption>` : null}
      <thead>
        <tr>${heads.map((head, i) => html`<th scope="col" class=${i >= heads.length - numbers ? "number" : ""}>${head}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) => html`<tr>
            ${row.map((cell, i) =>
              i === 0
                ? html`<th scope="row">${cell}</th>`
                : html`<td class=${i >= row.length - numbers ? "number" : ""}>${cell}</td>`,
            )}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>
`;

/** What is drawn only once it is opened. @param {{summary: any, children: () => any, open?: boolean}} props */
export function Folded({ summary, children, open = false }) {
  const [isOpen, setOpen] = useState(open);
  return html`<details open=${isOpen} onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
    <summary>${summary}</summary>
    ${isOpen ? children() : null}
  </details>`;
}

/**
 * A picture with its words, and the table behind it.
 * @param {{caption: any, label: string, table: () => any, children: any, className?: string}} props
 */
export const Figure = ({ caption, label, table, children, className = "" }) => html`
  <figure class=${className}>
    <figcaption>${caption}</figcaption>
    <div role="img" aria-label=${label}>${children}</div>
    <${Folded} summary="As a table">${table}<//>
  </figure>
`;

/** A strength with its interval on a line from 0 to 1; hollow where it may be chance. @param {{value: number, low?: number, high?: number, found?: boolean}} props */
export function Meter({ value, low, high, found = true }) {
  const part = (/** @type {number} */ v) => 100 * Math.min(Math.max(v, 0), 1);
  return html`<svg class=${`meter ${found ? "" : "chance"}`} viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
    <rect class="track" x="0" y="3" width="100" height="4" />
    <rect class="bar" x="0" y="3" width=${part(value)} height="4" />
    ${low === undefined || high === undefined
      ? null
      : html`<rect class="reach" x=${part(low)} y="1" width=${Math.max(part(high) - part(low), 0.6)} height="8" />`}
  </svg>`;
}

/** What a pair says, to be read aloud. @param {number} k */
export function pairWords(k) {
  const names = `${quoted(columns[pairs.a[k]].name)} and ${quoted(columns[pairs.b[k]].name)}`;
  const sure = isFound(k) ? "" : "may be chance, ";
  return `${names}: ${sure}strength ${strength(pairs.strength[k])}, p ${pvalue(pairs.pvalue[k])}`;
}

/** A note that what is shown may be chance. */
export const ChanceNote = () => html`<p class="note" role="note">
  <strong>May be chance.</strong> Among ${count(nPairs)} pairs, so much is found without any dependence (at a
  false-discovery rate of ${percent(data.rate)}). What is drawn below is grey, and shown for completeness.
</p>`;

/** What the numbers of weekdays mean. @param {{some: number[]}} props columns */
export const Weekdays = ({ some }) =>
  some.some((i) => (columns[i].parent ?? null) !== null && columns[i].name.endsWith("(weekday)")) ? html`<p class="aside">Weekdays are counted from Monday, which is 0.</p>` : null;

/** Buttons of which one is on. @param {{label: string, options: [string, string][], value: string, onChange: (value: string) => void}} props */
export const Switch = ({ label, options, value, onChange }) => html`
  <div class="switch" role="group" aria-label=${label}>
    ${options.map(
      ([key, text]) =>
        html`<button type="button" aria-pressed=${value === key ? "true" : "false"} onClick=${() => onChange(key)}>${text}</button>`,
    )}
  </div>
`;

/** Lines that give the same in Python. @param {{lines: string[]}} props */
export function Code({ lines }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(lines.join("\n"));
      setSaid("copied");
    } catch {
      setSaid("select it by hand: the browser does not let pages copy here");
    }
  };
  return html`<div class="code">
    <pre tabindex="0"><code>${lines.join("\n")}</code></pre>
    <button type="button" onClick=${copy}>Copy</button> <span role="status">${said}</span>
  </div>`;
}

/** A text as Python writes it. @param {string} text */
export const literal = (text) => JSON.stringify(text);

/** How to have this exploration in Python. */
export function loading() {
  const more = [];
  if (data.target !== null) more.push(`target=${literal(columns[data.target].name)}`);
  if (data.given.length) more.push(`given=[${data.given.map((i) => literal(columns[i].name)).join(", ")}]`);
  return ["import featgeo as fg", "", `found = fg.explore(${["table", ...more].join(", ")})  # or fg.load("exploration.fg")`];
}
