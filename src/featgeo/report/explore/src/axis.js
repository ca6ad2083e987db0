// Where cells of a column are on a line: by value, by the logarithm of it, or by rank. Labels are never on an axis.
import { scaleLinear, scaleLog, scaleUtc } from "d3-scale";
import { date, number } from "./format.js";

/**
 * @typedef {import("./data.js").Column} Column
 * @typedef {"value" | "log" | "rank" | "step"} Mode
 * @typedef {object} Axis
 * @property {Mode} mode
 * @property {(cell: number) => number} at pixels of the middle of a cell
 * @property {(cell: number) => [number, number]} span pixels of its ends
 * @property {{at: number, text: string}[]} ticks
 */

const CROWDED = 0.25; // share of the range that 90 % of the rows must fill for a plain scale
const HEAVY = 0.4; // share of one cell that would fill an axis of ranks
const TICK = 74; // pixels between ticks, about
const DATE_TICK = 110;

const LISTED = 8; // cells that are named one below the other, as labels are
const OUTER = 0.01; // share of the rows at either end that a distribution leaves out where they would fill most of it

/** Whether cells of a column are named one by one: labels, and numbers or dates of few cells. @param {Column} column */
export const isListed = (column) => column.kind === "label" || (column.cells?.rows.length ?? 0) <= LISTED;

/** @type {WeakMap<Column, Mode>} asked for by each figure of each pair */
const preferred = new WeakMap();

/** The mode that shows a column best. @param {Column} column @returns {Mode} */
export function preferredMode(column) {
  const mode = preferred.get(column) ?? bestMode(column);
  preferred.set(column, mode);
  return mode;
}

/** @param {Column} column @returns {Mode} */
function bestMode(column) {
  const { low, high, rows, whole } = cellsOf(column);
  const first = low[0];
  const last = high[high.length - 1];
  if (whole && rows.length <= 12) return "value";
  const inner = quantileValue(column, 0.95) - quantileValue(column, 0.05);
  if (inner > CROWDED * (last - first) || last === first) return "value";
  if (first > 0 && column.kind === "number") return "log";
  return Math.max(...rows) > HEAVY * rows.reduce((sum, n) => sum + n, 0) ? "step" : "rank";
}

/** Modes that a column can be shown in. @param {Column} column @returns {Mode[]} */
export function modesOf(column) {
  return column.kind === "number" && cellsOf(column).low[0] > 0 ? ["value", "log", "rank", "step"] : ["value", "rank", "step"];
}

/** A column without its outermost rows, where they would fill most of a plain scale. @param {Column} column @returns {Column} */
export function middleOf(column) {
  const { rows, low, high, place, whole } = cellsOf(column);
  if (isListed(column) || preferredMode(column) === "value") return column;
  const ends = cumulative(rows);
  const inner = (/** @type {any} */ _, /** @type {number} */ cell) => ends[cell + 1] > OUTER && ends[cell] < 1 - OUTER;
  const kept = rows.filter(inner);
  return kept.length <= LISTED ? column : { ...column, cells: { rows: kept, missing: 0, low: low.filter(inner), high: high.filter(inner), place: place.filter(inner), whole } };
}

/** @param {Column} column */
function cellsOf(column) {
  const cells = /** @type {import("./data.js").Cells} */ (column.cells);
  return { rows: cells.rows, low: cells.low ?? [], high: cells.high ?? [], place: cells.place ?? [], whole: cells.whole };
}

/** Cumulative shares before each cell, and all of them. @param {number[]} rows */
export function cumulative(rows) {
  const total = Math.max(rows.reduce((sum, n) => sum + n, 0), 1);
  let before = 0;
  return [0, ...rows.map((n) => (before += n) / total)];
}

/** @param {Column} column @param {number} share */
function quantileValue(column, share) {
  const { rows, place } = cellsOf(column);
  const ends = cumulative(rows);
  return place[Math.max(ends.findIndex((end) => end >= share) - 1, 0)];
}

/** A scale over values of a column. @param {Column} column @param {[number, number]} domain @param {[number, number]} range @param {Mode} mode */
export function valueScale(column, domain, range, mode) {
  const [from, to] = domain[0] === domain[1] ? [domain[0] - 1, domain[1] + 1] : domain;
  if (column.kind === "date") return scaleUtc([from, to], range);
  return mode === "log" && from > 0 ? scaleLog([from, to], range) : scaleLinear([from, to], range);
}

/** Ticks of such a scale. @param {Column} column @param {ReturnType<typeof valueScale>} scale @param {number} most */
export function ticksOf(column, scale, most) {
  const [from, to] = scale.range();
  const isLog = column.kind === "number" && "base" in scale; // powers of ten alone would be too few
  const ticks = (/** @type {number} */ n) => /** @type {any[]} */ (scale.ticks(n));
  const asked = isLog ? 12 : Math.max(most, 2);
  const every = ticks(ticks(asked).length < 2 ? 2 * asked : asked); // of one alone nobody sees a scale
  const { whole, place } = cellsOf(column);
  const few = whole && place.every(Number.isInteger) ? every.filter((value) => Number.isInteger(Number(value))) : every; // 1, 2, 3, not 1.5
  const apart = Math.abs(to - from) / Math.max(most * 1.6, 2);
  /** @type {{at: number, text: string}[]} */
  const result = [];
  for (const value of few) {
    const at = scale(value);
    if (result.length && Math.abs(at - result[result.length - 1].at) < apart) continue;
    result.push({ at, text: tickText(column, value, scale) });
  }
  return result;
}

/** @param {Column} column @param {any} value @param {ReturnType<typeof valueScale>} scale */
function tickText(column, value, scale) {
  if (column.kind === "date") {
    const [from, to] = scale.domain().map(Number);
    const text = date(Number(value), to - from);
    return text.endsWith("-01-01") ? text.slice(0, -6) : text.endsWith("-01") ? text.slice(0, -3) : text;
  }
  return compact(Number(value));
}

/** A round number as a tick writes it. @param {number} value */
export function compact(value) {
  const size = Math.abs(value);
  if (size >= 1e6 && size < 1e15) {
    const [unit, letter] = size >= 1e12 ? [1e12, "T"] : size >= 1e9 ? [1e9, "G"] : [1e6, "M"];
    return `${number(value / unit, 3).replace(/\.?0+$/, "")}${letter}`;
  }
  const text = number(value, 4);
  return text.includes(".") ? text.replace(/\.?0+(?=×|$)/, "") : text;
}

/** How many ticks of a column have room. @param {Column} column @param {number} width pixels */
export const mostTicks = (column, width) => Math.max(Math.floor(width / (column.kind === "date" ? DATE_TICK : TICK)), 2);

/** @param {Column} column a number or a date @param {[number, number]} range pixels @param {Mode} mode @returns {Axis} */
export function axisOf(column, range, mode) {
  const { rows, low, high, place } = cellsOf(column);
  const most = mostTicks(column, range[1] - range[0]);
  if (mode === "rank" || mode === "step") {
    const ends = cumulative(mode === "rank" ? rows : rows.map(() => 1)).map((share) => range[0] + share * (range[1] - range[0]));
    /** @type {{at: number, text: string}[]} */
    const ticks = [];
    for (let i = 0; i <= most; i++) {
      const cell = Math.min(Math.max(ends.findIndex((end) => end >= range[0] + ((i + 0.5) / (most + 1)) * (range[1] - range[0])) - 1, 0), rows.length - 1);
      const at = (ends[cell] + ends[cell + 1]) / 2;
      const text = column.kind === "date" ? date(place[cell]) : compact(Number(place[cell].toPrecision(3)));
      if (!ticks.length || at - ticks[ticks.length - 1].at > (column.kind === "date" ? DATE_TICK : TICK) * 0.7) ticks.push({ at, text });
    }
    return { mode, at: (cell) => (ends[cell] + ends[cell + 1]) / 2, span: (cell) => [ends[cell], ends[cell + 1]], ticks };
  }
  const around = mode === "value" ? aroundOf(column) : 0;
  const [first, last] = [low[0] - around, high[high.length - 1] + around];
  const scale = valueScale(column, [first, last], range, mode);
  return {
    mode,
    at: (cell) => scale(place[cell]),
    span: (cell) => [
      scale(cell ? (high[cell - 1] + low[cell]) / 2 : first),
      scale(cell < low.length - 1 ? (high[cell] + low[cell + 1]) / 2 : last),
    ],
    ticks: ticksOf(column, scale, most),
  };
}

/** What the outermost of single values take beyond themselves, as all others do to either side: else they would seem to be twice as frequent. @param {Column} column */
function aroundOf(column) {
  const { low, high, whole } = cellsOf(column);
  const isSingle = whole || (column.kind === "number" && low.every(Number.isInteger) && high.every(Number.isInteger));
  return isSingle && low.length > 1 ? Math.min(...low.slice(1).map((value, i) => value - high[i])) / 2 : 0;
}

const BINS = 56;

/** Rows along an axis: pixels of each bin and its height from 0 to 1. @param {Column} column @param {Axis} axis @param {[number, number]} range */
export function densityOf(column, axis, range) {
  const { rows } = cellsOf(column);
  const bins = Math.max(Math.min(BINS, Math.floor((range[1] - range[0]) / 5)), 8);
  return rows.length <= bins ? densityOfCells(rows, axis) : densityOfBins(rows, axis, range, bins);
}

/** Few cells, as they are. @param {number[]} rows @param {Axis} axis */
function densityOfCells(rows, axis) {
  const boxes = rows.map((n, cell) => {
    const [from, to] = axis.span(cell);
    return { x: from, width: to - from, height: n / Math.max(to - from, 1e-9) };
  });
  const top = Math.max(...boxes.map((box) => box.height), 1e-9);
  return boxes.map((box) => ({ ...box, height: box.height / top }));
}

/** Many cells, shared out among bins. @param {number[]} rows @param {Axis} axis @param {[number, number]} range @param {number} bins */
function densityOfBins(rows, axis, range, bins) {
  const width = (range[1] - range[0]) / bins;
  const heights = new Array(bins).fill(0);
  rows.forEach((n, cell) => {
    const [from, to] = axis.span(cell);
    const first = Math.min(Math.max(Math.floor((from - range[0]) / width), 0), bins - 1);
    const last = Math.min(Math.max(Math.floor((to - range[0]) / width), 0), bins - 1);
    for (let bin = first; bin <= last; bin++) {
      const left = Math.max(from, range[0] + bin * width);
      const right = Math.min(to, range[0] + (bin + 1) * width);
      heights[bin] += first === last ? n : (n * Math.max(right - left, 0)) / (to - from);
    }
  });
  const top = Math.max(...heights, 1e-9);
  return heights.map((height, bin) => ({ x: range[0] + bin * width, width, height: height / top }));
}
