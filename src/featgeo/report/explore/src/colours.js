// Colours that colour-blind people tell apart: blue against orange, one ramp for sizes, eight tones for labels.
import { interpolateYlGnBu } from "d3-scale-chromatic";

/** @typedef {[number, number, number]} Rgb */

const PAPER = { light: /** @type {Rgb} */ ([255, 255, 255]), dark: /** @type {Rgb} */ ([20, 24, 28]) };
const BLUE = { light: /** @type {Rgb} */ ([33, 102, 172]), dark: /** @type {Rgb} */ ([92, 172, 238]) };
const ORANGE = { light: /** @type {Rgb} */ ([201, 84, 0]), dark: /** @type {Rgb} */ ([255, 159, 67]) };

/** @param {boolean} isDark */
const scheme = (isDark) => (isDark ? "dark" : "light");

/** @param {Rgb} from @param {Rgb} to @param {number} t */
const mixed = (from, to, t) => `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * t)).join(",")})`;

const STEPS = 256; // colours of a ramp: more cannot be told apart, and a large matrix asks often

/** A ramp whose colours are mixed once. @param {(t: number, isDark: boolean) => string} mix of t from 0 to 1 */
function kept(mix) {
  /** @type {Map<number, string>} */
  const known = new Map();
  return (/** @type {number} */ t, /** @type {boolean} */ isDark) => {
    const step = Math.round(Math.min(Math.max(t, 0), 1) * STEPS);
    const key = isDark ? -1 - step : step;
    const colour = known.get(key) ?? mix(step / STEPS, isDark);
    known.set(key, colour);
    return colour;
  };
}

/** Sizes from 0 to 1, the larger the further from the paper. */
export const sequential = kept((size, isDark) => isDark ? interpolateYlGnBu(1 - (0.08 + 0.92 * size)) : interpolateYlGnBu(0.05 + 0.95 * size));

const signed = kept((half, isDark) => {
  const of = scheme(isDark);
  const t = 2 * half - 1;
  return mixed(PAPER[of], t < 0 ? ORANGE[of] : BLUE[of], Math.min(0.06 + 0.94 * Math.abs(t), 1));
});

/** Signed values from -1 to 1: orange below, blue above. @param {number} t @param {boolean} isDark */
export const diverging = (t, isDark) => signed((t + 1) / 2, isDark);

/** The same as a ground on which ink can be read. @param {number} t @param {boolean} isDark */
export function ground(t, isDark) {
  const of = scheme(isDark);
  return mixed(PAPER[of], t < 0 ? ORANGE[of] : BLUE[of], Math.min(0.1 + 0.35 * Math.abs(t), 0.45) * (isDark ? 0.95 : 1));
}

// Okabe and Ito's, the yellow darkened for white paper.
const TONES = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a6fc2", "#8c8c8c"],
  dark: ["#4aa3df", "#e69f00", "#1fc493", "#dd92bb", "#8fd0f5", "#f07c2e", "#a58be0", "#8c8c8c"],
};

/** @param {number} i @param {boolean} isDark */
export const tone = (i, isDark) => TONES[scheme(isDark)][i % 8];
