// The cells of the matrix on a canvas: one pixel each, enlarged, so that tens of thousands take no longer than a blink.
import { pairOf } from "../data.js";

const MOST_PIXELS = 16e6; // of the drawing: memory
const GAP_FROM = 8; // pixels of a cell from which lines part the cells
const DOT_FROM = 6; // and from which a dot says that it may be chance

/** @typedef {[number, number, number]} Rgb */

/** @type {Map<string, Rgb>} */
const known = new Map();

/** The numbers in rgb(…). @param {string} colour @returns {Rgb} */
function rgbOf(colour) {
  const seen = known.get(colour) ?? /** @type {Rgb} */ (colour.match(/[\d.]+/g)?.slice(0, 3).map(Number) ?? [0, 0, 0]);
  known.set(colour, seen);
  return seen;
}

/** @param {boolean} isDark @returns {{own: Rgb, chance: Rgb, dot: string}} no pair, what may be chance, and the dot on it */
const plain = (isDark) => isDark
  ? { own: [43, 52, 60], chance: [36, 43, 50], dot: "#5f6c78" }
  : { own: [223, 229, 234], chance: [238, 241, 244], dot: "#a9b4be" };

/** @param {HTMLCanvasElement} canvas @param {number[]} rows @param {number[]} cols @param {number} size of cells @param {import("../measures.js").Measure} one @param {boolean} isDark */
export function draw(canvas, rows, cols, size, one, isDark) {
  const [width, height] = [cols.length * size, rows.length * size];
  const scale = Math.min(devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / Math.max(width * height, 1)));
  canvas.width = Math.max(Math.round(width * scale), 1);
  canvas.height = Math.max(Math.round(height * scale), 1);
  const context = canvas.getContext("2d");
  if (!context || !width || !height) return;
  const { pixels, chance } = coloured(rows, cols, one, isDark);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(pixels, 0, 0, width, height);
  const gap = size >= GAP_FROM ? 1 : 0;
  const dot = Math.max(size / 7, 1.5);
  context.fillStyle = plain(isDark).dot;
  if (size >= DOT_FROM) for (const [i, j] of chance) context.fillRect(j * size + (size - gap - dot) / 2, i * size + (size - gap - dot) / 2, dot, dot);
  if (!gap) return;
  cols.forEach((_, j) => context.clearRect((j + 1) * size - gap, 0, gap, height));
  rows.forEach((_, i) => context.clearRect(0, (i + 1) * size - gap, width, gap));
}

/** A pixel for each cell, and the cells that may be chance. @param {number[]} rows @param {number[]} cols @param {import("../measures.js").Measure} one @param {boolean} isDark */
function coloured(rows, cols, one, isDark) {
  const pixels = document.createElement("canvas");
  [pixels.width, pixels.height] = [cols.length, rows.length];
  const context = /** @type {CanvasRenderingContext2D} */ (pixels.getContext("2d"));
  const image = context.createImageData(cols.length, rows.length);
  const quiet = plain(isDark);
  /** @type {[number, number][]} */
  const chance = [];
  rows.forEach((r, i) => cols.forEach((c, j) => {
    const k = pairOf(r, c);
    const value = k < 0 ? null : one.value(k);
    const isSure = value !== null && value !== undefined && one.found(k);
    if (k >= 0 && !isSure) chance.push([i, j]);
    const [red, green, blue] = isSure ? rgbOf(one.colour(value, isDark)) : k < 0 ? quiet.own : quiet.chance;
    const at = 4 * (i * cols.length + j);
    image.data[at] = red;
    image.data[at + 1] = green;
    image.data[at + 2] = blue;
    image.data[at + 3] = 255;
  }));
  context.putImageData(image, 0, 0);
  return { pixels, chance };
}
