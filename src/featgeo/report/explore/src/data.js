// What the page shows: the document of `Exploration.to_json()`, and questions that all views ask of it. Its first part
// stands before this program, which begins while the browser still reads the rest.
import { signal } from "@preact/signals";

/**
 * @typedef {object} Cells Cells of a column; numbers and dates have ends, labels have names.
 * @property {number[]} rows
 * @property {number} missing
 * @property {string[]} [labels]
 * @property {number[]} [low]
 * @property {number[]} [high]
 * @property {number[]} [place]
 * @property {number[]} [points] cells on which curves are drawn
 * @property {boolean} [whole] whether each cell is one value
 *
 * @typedef {object} Column
 * @property {string} name
 * @property {"number" | "label" | "date"} kind
 * @property {string} [original]
 * @property {number} [rows]
 * @property {number} [missing]
 * @property {number} [missing_share]
 * @property {number} [distinct]
 * @property {boolean} [distinct_exact]
 * @property {string} [aside]
 * @property {number | null} strongest_partner
 * @property {number | null} [strength]
 * @property {number} [n_partners]
 * @property {number | null} missing_depends_on
 * @property {number | null} [missing_strength]
 * @property {number | null} determined_by
 * @property {number | null} [determined_share]
 * @property {number | null} duplicate_of
 * @property {number | null} [parent]
 * @property {Cells} [cells] of columns that are compared
 *
 * @typedef {object} Given One column given cells of another: shares in thousandths, or mean and quantiles.
 * @property {number[]} [labels]
 * @property {(number[] | null)[]} [share]
 * @property {((number | null)[] | null)[]} [observed]
 * @property {(number | null)[]} [mean]
 * @property {(number | null)[]} [q05]
 * @property {(number | null)[]} [q25]
 * @property {(number | null)[]} [q50]
 * @property {(number | null)[]} [q75]
 * @property {(number | null)[]} [q95]
 * @property {(number | null)[]} [observed_mean]
 *
 * @typedef {object} Regions
 * @property {string[]} a
 * @property {string[]} b
 * @property {number[][]} observed
 * @property {number[][]} residual
 * @property {number[][]} sure
 *
 * @typedef {object} Detail
 * @property {string[]} words
 * @property {{sigma: number[], held_out: number[], low: number[], high: number[], supported: boolean[]}} modes
 * @property {{a?: number[], b?: number[]}} points cells on which curves of this pair are drawn, where they are more than usual
 * @property {(number | null)[][]} f
 * @property {(number | null)[][]} g
 * @property {Given} b_given_a
 * @property {Given} a_given_b
 * @property {Regions} regions
 * @property {number} negative_mass
 *
 * @typedef {Record<string, number[]> & {classic_kind: string[]}} Pairs numbers of all pairs, by name
 *
 * @typedef {object} Interaction
 * @property {number} a
 * @property {number} b
 * @property {number} energy
 * @property {number} pvalue
 * @property {number} qvalue
 * @property {number} rows
 * @property {string} where
 * @property {{a: string[], b: string[], rows: number[], share: number[], effects: Record<string, number[]>}} [cells]
 *
 * @typedef {Record<string, number[]> & {at: number[][], drawn: number}} Graph direct dependences, and where columns are drawn
 *
 * @typedef {{a: number, b: number, strength: number, low: number, high: number, classic: number | null, classic_kind: string, words: string[]}} Finding
 *
 * @typedef {object} First What is there at once.
 * @property {number} format
 * @property {string} version
 * @property {string} title
 * @property {number} rows
 * @property {number} rate
 * @property {number} confidence
 * @property {number | null} target
 * @property {number[]} given
 * @property {string[]} alerts
 * @property {Column[]} columns
 * @property {{found: number, pairs: number, strongest: Finding[], missed: Finding[]}} findings
 *
 * @typedef {object} Later What is there once `isRead`.
 * @property {(Cells | null)[]} cells
 * @property {number[]} order
 * @property {Pairs} pairs
 * @property {Graph | null} graph
 * @property {(Record<string, (number | null)[]> & {column: number[]}) | null} about_target
 * @property {Interaction[]} interactions
 */

/** @param {string} id of a part of the page */
const textOf = (id) => document.getElementById(id)?.textContent ?? "";

/** @type {First & Later} */
export const data = JSON.parse(textOf("data"));
export const { columns, rate } = data;
export let pairs = /** @type {Pairs} */ ({});
export let nPairs = 0;
export const isRead = signal(false);

/** @type {Int32Array} */
let places;
/** @type {Map<string, string>} details as they are written, by place: each is read when it is asked for */
const written = new Map();
/** @type {Map<number, Detail>} */
const known = new Map();

addEventListener("DOMContentLoaded", () => {
  Object.assign(data, JSON.parse(textOf("later")));
  data.cells.forEach((cells, i) => cells && (columns[i].cells = cells));
  pairs = data.pairs;
  nPairs = pairs.a.length;
  places = new Int32Array(columns.length ** 2).fill(-1);
  for (let k = 0; k < nPairs; k++) {
    places[pairs.a[k] * columns.length + pairs.b[k]] = k;
    places[pairs.b[k] * columns.length + pairs.a[k]] = k;
  }
  for (const line of textOf("details").split("\n")) {
    const end = line.indexOf(" ");
    if (end > 0) written.set(line.slice(0, end), line.slice(end + 1));
  }
  isRead.value = true;
});

/** The place of a pair of columns among all pairs; -1 for two that are no pair. @param {number} a @param {number} b */
export const pairOf = (a, b) => places[a * columns.length + b] ?? -1;

/** Whether a pair is called dependent at the rate of false discoveries. @param {number} k */
export const isFound = (k) => pairs.qvalue[k] <= rate;

/** @param {number} k @returns {Detail | undefined} */
export function detailOf(k) {
  const line = known.has(k) ? undefined : written.get(String(k));
  if (line !== undefined) known.set(k, JSON.parse(line));
  return known.get(k);
}

/** How many pairs are here in full. */
export const nDetails = () => written.size;

/** Pairs of a column, the strongest first. @param {number} column */
export function pairsOf(column) {
  const own = [];
  for (let k = 0; k < nPairs; k++) if (pairs.a[k] === column || pairs.b[k] === column) own.push(k);
  return own;
}

const isTyped = columns.some((column) => (column.original ?? "text") !== "text");

/** What a column was before it was read; nothing where all was text, as in a CSV. @param {Column} column */
export const originalOf = (column) => (isTyped ? column.original ?? "" : "");

/** The column of a pair that is not the one named. @param {number} k @param {number} column */
export const otherOf = (k, column) => (pairs.a[k] === column ? pairs.b[k] : pairs.a[k]);

export const CLASSIC = /** @type {Record<string, string>} */ ({
  pearson: "Pearson’s r",
  cramer: "Cramér’s V",
  ratio: "correlation ratio",
});

/** By how much the strength exceeds what the usual coefficient says. @param {number} k */
export const missedBy = (k) => Math.max(pairs.strength[k], 0) - Math.abs(pairs.classic[k] ?? 0);
