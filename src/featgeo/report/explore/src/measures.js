// What the matrix can show of a pair, and in which colour.
import { CLASSIC, data, isFound, missedBy, pairs } from "./data.js";
import { diverging, sequential } from "./colours.js";
import { pvalue, strength } from "./format.js";

/**
 * @typedef {object} Measure
 * @property {string} key
 * @property {string} name
 * @property {string} help
 * @property {(k: number) => number | null} value
 * @property {(value: number | null) => string} text
 * @property {(value: number, isDark: boolean) => string} colour
 * @property {(k: number) => boolean} found whether it is no chance
 * @property {[number, number]} ends of the legend
 */

/** Digits of a p-value: from 0 at 1 to 1 at 10⁻¹⁶ and below. @param {number} p */
const sureness = (p) => Math.min(-Math.log10(Math.max(p, 1e-300)) / 16, 1);

/** @param {number} k */
const foundGiven = (k) => (pairs.qvalue_given?.[k] ?? 1) <= data.rate;

/** @type {Measure[]} */
export const MEASURES = [
  {
    key: "strength", name: "strength", help: "Correlation of the best functions of both columns on rows that did not choose them.",
    value: (k) => pairs.strength[k], text: strength, colour: sequential, found: isFound, ends: [0, 1],
  },
  {
    key: "classic", name: "Pearson", help: `Pearson’s r of numbers; of labels ${CLASSIC.cramer}, of both the correlation ratio.`,
    value: (k) => pairs.classic[k], text: strength, colour: diverging, found: isFound, ends: [-1, 1],
  },
  {
    key: "difference", name: "difference", help: "Strength less the size of the usual coefficient: what that one misses.",
    value: missedBy, text: strength, colour: diverging, found: isFound, ends: [-1, 1],
  },
  {
    key: "pvalue", name: "p-value", help: "How often independent columns would look as dependent; further right on the scale, it is surer that the two are not.",
    value: (k) => pairs.pvalue[k], text: pvalue, colour: (p, isDark) => sequential(sureness(p), isDark), found: isFound, ends: [1, 1e-16],
  },
  ...(data.given.length
    ? [/** @type {Measure} */ ({
        key: "given", name: "given", help: "Strength that is left once functions of the given columns are taken off both.",
        value: (/** @type {number} */ k) => pairs.strength_given[k], text: strength, colour: sequential, found: foundGiven, ends: [0, 1],
      })]
    : []),
];
