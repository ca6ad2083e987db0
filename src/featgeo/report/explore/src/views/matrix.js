// All pairs at once: a matrix that is drawn, one cell of which can be reached by keys, and beside it a list of all pairs.
import { computed, signal } from "@preact/signals";
import { html } from "htm/preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { columns, data, isFound, missedBy, nPairs, pairOf, pairs } from "../data.js";
import { count, fitted, quoted } from "../format.js";
import { MEASURES } from "../measures.js";
import { Switch, useWidth } from "../parts.js";
import { go, pairHref } from "../route.js";
import { dark, isPrinting } from "../scheme.js";
import { draw } from "./matrix_drawing.js";
import { PairList } from "./pair_list.js";

const search = signal("");
const filter = signal("all");
const measureKey = signal("strength");
const zoom = signal(0); // steps from the size that fits
const focus = signal({ row: 0, col: 1 });
const hovered = signal(/** @type {{row: number, col: number} | null} */ (null));

const measure = computed(() => MEASURES.find((one) => one.key === measureKey.value) ?? MEASURES[0]);
const words = computed(() => search.value.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 2));

/** @param {number} column @param {string | undefined} word */
const fits = (column, word) => word === undefined || columns[column].name.toLowerCase().includes(word);

const shownRows = computed(() => data.order.filter((column) => fits(column, words.value[0])));
const shownCols = computed(() => data.order.filter((column) => fits(column, words.value[1])));
const listed = computed(() => {
  const [first, second] = words.value;
  const kept = [];
  for (let k = 0; k < nPairs; k++) {
    const [a, b] = [pairs.a[k], pairs.b[k]];
    if (!((fits(a, first) && fits(b, second)) || (fits(b, first) && fits(a, second)))) continue;
    if (filter.value === "found" && !isFound(k)) continue;
    if (filter.value === "missed" && !(isFound(k) && missedBy(k) > 0.1)) continue;
    if (filter.value === "chance" && isFound(k)) continue;
    kept.push(k);
  }
  return kept;
});

export function Matrix() {
  const options = /** @type {[string, string][]} */ (MEASURES.map((one) => [one.key, one.name]));
  return html`
    <h1 tabindex="-1">All pairs</h1>
    <div class="controls">
      <label>Search columns
        <input type="search" value=${search.value} onInput=${(/** @type {any} */ event) => (search.value = event.target.value)} placeholder="one name, or two" autocomplete="off" spellcheck=${false} />
      </label>
      <label>Pairs in the list
        <select value=${filter.value} onChange=${(/** @type {any} */ event) => (filter.value = event.target.value)}>
          <option value="all">all</option>
          <option value="found">that depend</option>
          <option value="missed">that the usual coefficient misses</option>
          <option value="chance">that may be chance</option>
        </select>
      </label>
      <div class="labelled"><span>Show</span>
        <${Switch} label="What the matrix shows" options=${options} value=${measureKey.value} onChange=${(/** @type {string} */ key) => (measureKey.value = key)} />
      </div>
    </div>
    <p class="aside">${measure.value.help}</p>
    <div class="matrix-and-list">
      <section aria-label="Matrix"><${Grid} /></section>
      <section aria-label="List of pairs">
        <${PairList} pairs=${listed.value} measure=${measure.value} />
      </section>
    </div>
  `;
}

const SIZES = [3, 5, 8, 12, 15, 18, 22, 26, 30, 36, 44]; // pixels of a cell
const READABLE = 12; // pixels of a cell beside which a name can stand,
const PRINTED = 9; // and on paper, which is finer

/** The size of cells that fills a width, and is readable. @param {number} width @param {number} cols @param {number} step */
function cellSize(width, cols, step) {
  const best = Math.max(Math.min(Math.floor(width / Math.max(cols, 1)), 44), READABLE);
  let place = SIZES.findIndex((size) => size > best);
  place = place < 0 ? SIZES.length - 1 : Math.max(place - 1, 0);
  return step ? SIZES[Math.min(Math.max(place + step, 0), SIZES.length - 1)] : best;
}

function Grid() {
  const [ref, width] = useWidth("matrix Grid");
  const rows = shownRows.value;
  const cols = shownCols.value;
  const names = width < 500 ? 84 : 136;
  const room = width - names - 18;
  const size = isPrinting.value ? Math.min(Math.max(Math.floor(room / cols.length), 2), 24) : cellSize(room, cols.length, zoom.value);
  const readable = size >= (isPrinting.value ? PRINTED : READABLE);
  const head = readable ? 118 : 0;
  const side = readable ? names : 0;
  const letters = Math.min(Math.max(size * 0.78, 9.5), 13);
  const within = (/** @type {number} */ column, /** @type {number} */ pixels) => fitted(columns[column].name, ((pixels - 7) * 12) / letters);
  return html`<div ref=${ref}>
    ${rows.length && cols.length && width
      ? html`<${Hint} rows=${rows} cols=${cols} />
          <div class="matrix" style=${{ "--cell": `${size}px`, "--side": `${side}px`, "--head": `${head}px`, fontSize: `${letters}px` }}>
            <div class="field" style=${{ width: `${side + cols.length * size}px`, height: `${head + rows.length * size}px` }}>
              ${readable ? html`<div class="heads" aria-hidden="true"><span class="corner"></span>${cols.map((c, i) => html`<span key=${c} class=${isAt(i, "col") ? "at" : ""}>${within(c, head)}</span>`)}</div>` : null}
              <div class="body">
                ${readable ? html`<div class="sides" aria-hidden="true">${rows.map((r, i) => html`<span key=${r} class=${isAt(i, "row") ? "at" : ""}>${within(r, side)}</span>`)}</div>` : null}
                <${Drawing} rows=${rows} cols=${cols} size=${size} />
              </div>
            </div>
          </div>
          <${Legend} />`
      : width ? html`<p>No column is named so.</p>` : null}
  </div>`;
}

/** @param {number} i @param {"row" | "col"} side */
const isAt = (i, side) => hovered.value !== null && hovered.value[side] === i;

/** What is under the pointer, or in focus. @param {{rows: number[], cols: number[]}} props */
function Hint({ rows, cols }) {
  const at = hovered.value ?? focus.value;
  const [a, b] = [rows[Math.min(at.row, rows.length - 1)], cols[Math.min(at.col, cols.length - 1)]];
  return html`<div class="hint">
    <p class="pointed" aria-hidden="true">${cellWords(a, b)}</p>
    <div class="zoom" role="group" aria-label="Size of the matrix">
      <button type="button" aria-label="smaller" onClick=${() => (zoom.value = Math.max(zoom.value - 1, -8))}>−</button>
      <button type="button" aria-label="larger" onClick=${() => (zoom.value = Math.min(zoom.value + 1, 8))}>+</button>
      <button type="button" onClick=${() => (zoom.value = 0)}>fit</button>
    </div>
  </div>`;
}

/** What a cell says. @param {number} a @param {number} b */
function cellWords(a, b) {
  const k = pairOf(a, b);
  const names = `${quoted(columns[a].name)} and ${quoted(columns[b].name)}`;
  if (k < 0) return a === b ? `${quoted(columns[a].name)}, the column itself` : `${names}: parts of one date`;
  const one = measure.value;
  const value = one.value(k);
  return `${names}: ${one.name} ${one.text(value)}${value === null || one.found(k) ? "" : ", may be chance"}`;
}

/** @param {{rows: number[], cols: number[], size: number}} props */
function Drawing({ rows, cols, size }) {
  const canvas = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const [width, height] = [cols.length * size, rows.length * size];
  const one = measure.value;
  const isDark = dark.value;
  useLayoutEffect(() => {
    if (canvas.current) draw(canvas.current, rows, cols, size, one, isDark);
  }, [rows, cols, size, one, isDark]);
  const place = (/** @type {any} */ event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const [col, row] = [Math.floor((event.clientX - box.left) / size), Math.floor((event.clientY - box.top) / size)];
    return row >= 0 && col >= 0 && row < rows.length && col < cols.length ? { row, col } : null;
  };
  const open = (/** @type {{row: number, col: number} | null} */ at) => {
    const k = at ? pairOf(rows[at.row], cols[at.col]) : -1;
    if (k >= 0) go(pairHref(k));
  };
  return html`<div class="cells" style=${{ width: `${width}px`, height: `${height}px` }}
      onPointerMove=${(/** @type {any} */ event) => (hovered.value = place(event))} onPointerLeave=${() => (hovered.value = null)}
      onClick=${(/** @type {any} */ event) => open(place(event))}>
    <canvas ref=${canvas} aria-hidden="true" style=${{ width: `${width}px`, height: `${height}px` }}></canvas>
    <${Focus} rows=${rows} cols=${cols} size=${size} open=${open} />
  </div>`;
}

const MOVES = /** @type {Record<string, [number, number]>} */ ({
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  PageUp: [-10, 0], PageDown: [10, 0], Home: [0, -1e9], End: [0, 1e9],
});

/** The one cell that keys reach: it moves over the drawing. @param {{rows: number[], cols: number[], size: number, open: (at: {row: number, col: number}) => void}} props */
function Focus({ rows, cols, size, open }) {
  const cell = useRef(/** @type {HTMLDivElement | null} */ (null));
  const moved = useRef(false);
  const clamp = (/** @type {number} */ value, /** @type {number} */ most) => Math.min(Math.max(value, 0), most - 1);
  const row = clamp(focus.value.row, rows.length);
  const col = clamp(focus.value.col, cols.length);
  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    cell.current?.focus({ preventScroll: true });
    cell.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [row, col]);
  const keyed = (/** @type {KeyboardEvent} */ event) => {
    const move = MOVES[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open({ row, col });
    } else if (move) {
      event.preventDefault();
      moved.current = true;
      const corner = event.ctrlKey && (event.key === "Home" || event.key === "End");
      focus.value = { row: corner ? clamp(move[1], rows.length) : clamp(row + move[0], rows.length), col: clamp(col + move[1], cols.length) };
    }
  };
  return html`<div role="grid" aria-label="Matrix of all pairs: arrow keys move, Enter opens the pair" aria-rowcount=${rows.length} aria-colcount=${cols.length} class="keys">
    <div role="row" aria-rowindex=${row + 1}>
      <div key=${`${row}/${col}`} ref=${cell} role="gridcell" tabindex="0" class="focus" aria-colindex=${col + 1} aria-label=${cellWords(rows[row], cols[col])}
        style=${{ left: `${col * size}px`, top: `${row * size}px`, width: `${size}px`, height: `${size}px` }} onKeyDown=${keyed}></div>
    </div>
  </div>`;
}

function Legend() {
  const one = measure.value;
  const [from, to] = one.ends;
  const at = (/** @type {number} */ t) => (one.key === "pvalue" ? 10 ** (-16 * t) : from + t * (to - from));
  const steps = Array.from({ length: 24 }, (_, i) => i / 23);
  return html`<p class="legend">
    <span>${one.text(from)}</span>
    <svg class="ramp" viewBox="0 0 240 10" preserveAspectRatio="none" aria-hidden="true">
      ${steps.map((t, i) => html`<rect x=${i * 10} width="10.5" height="10" fill=${one.colour(at(t), dark.value)} />`)}
    </svg>
    <span>${one.key === "pvalue" ? "≤ " : ""}${one.text(to)}</span>
    <span><span class="key chance-dot"></span> may be chance</span>
    <span>${count(shownRows.value.length)} × ${count(shownCols.value.length)} columns, those that go together beside each other</span>
  </p>`;
}

