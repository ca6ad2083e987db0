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

/** @param {boolean} isDark @returns {{own: Rgb, chance: Rgb, dot: string, paper: string}} no pair, what may be chance, the dot on it, and lines between cells */
const plain = (isDark) => isDark
  ? { own: [43, 52, 60], chance: [36, 43, 50], dot: "#5f6c78", paper: "#14181c" }
  : { own: [223, 229, 234], chance: [238, 241, 244], dot: "#a9b4be", paper: "#ffffff" };

/** @param {HTMLCanvasElement} canvas @param {number[]} rows @param {number[]} cols @param {number} size of cells @param {import("../measures.js").Measure} one @param {boolean} isDark */
export function draw(canvas, rows, cols, size, one, isDark) {
  const [width, height] = [cols.length * size, rows.length * size];
  const scale = Math.min(devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / Math.max(width * height, 1)));
  canvas.width = Math.max(Math.round(width * scale), 1);
  canvas.height = Math.max(Math.round(height * scale), 1);
  const context = canvas.getContext("2d");
  if (!context || !width || !height) return;
  const { pixels, chance } = coloured(rows, cols, one, isDark);
  const gap = size >= GAP_FROM ? 1 : 0;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(pixels, 0, 0, width, height);
  if (size >= DOT_FROM) context.drawImage(dotted(chance, canvas, size, gap, plain(isDark).dot), 0, 0, width, height);
  if (!gap) return;
  context.fillStyle = plain(isDark).paper; // what is cleared instead takes the rest of a printed page along
  cols.forEach((_, j) => context.fillRect((j + 1) * size - gap, 0, gap, height));
  rows.forEach((_, i) => context.fillRect(0, (i + 1) * size - gap, width, gap));
}

/** A dot in each cell of which there is a pixel: one pattern, cut out, for tens of thousands. @param {HTMLCanvasElement} cells @param {HTMLCanvasElement} like a canvas of this size @param {number} size @param {number} gap @param {string} colour */
function dotted(cells, like, size, gap, colour) {
  const dot = Math.max(size / 7, 1.5);
  const [tile, of] = canvasOf(size, size);
  of.fillStyle = colour;
  of.fillRect((size - gap - dot) / 2, (size - gap - dot) / 2, dot, dot);
  const [layer, context] = canvasOf(like.width, like.height);
  const scale = like.width / (cells.width * size);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, 0, 0, like.width, like.height);
  context.globalCompositeOperation = "source-in";
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat"));
  context.fillRect(0, 0, cells.width * size, cells.height * size);
  return layer;
}

/** @param {number} width @param {number} height @returns {[HTMLCanvasElement, CanvasRenderingContext2D]} */
function canvasOf(width, height) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  return [canvas, /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"))];
}

/** A pixel for each cell, and one for each that may be chance. @param {number[]} rows @param {number[]} cols @param {import("../measures.js").Measure} one @param {boolean} isDark */
function coloured(rows, cols, one, isDark) {
  const [pixels, context] = canvasOf(cols.length, rows.length);
  const [chance, marks] = canvasOf(cols.length, rows.length);
  const [image, mask] = [context.createImageData(cols.length, rows.length), marks.createImageData(cols.length, rows.length)];
  const quiet = plain(isDark);
  rows.forEach((r, i) => cols.forEach((c, j) => {
    const k = pairOf(r, c);
    const value = k < 0 ? null : one.value(k); // none of pairs with a given column once it is given
    const isSure = value !== null && one.found(k);
    const [red, green, blue] = value === null ? quiet.own : isSure ? rgbOf(one.colour(value, isDark)) : quiet.chance;
    const at = 4 * (i * cols.length + j);
    image.data[at] = red;
    image.data[at + 1] = green;
    image.data[at + 2] = blue;
    image.data[at + 3] = 255;
    if (value !== null && !isSure) mask.data[at + 3] = 255;
  }));
  context.putImageData(image, 0, 0);
  marks.putImageData(mask, 0, 0);
  return { pixels, chance };
}
