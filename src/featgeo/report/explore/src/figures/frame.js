// Axes around a drawing.
import { html } from "htm/preact";
import { fitted, textWidth } from "../format.js";

const EDGE = 8; // pixels that each drawing has beyond the right end of its axis
const BETWEEN = 6; // pixels between two texts

/** @typedef {{at: number, text: string}} Tick */

/** Ticks below a drawing, inside it; texts that would run into the one before are left out. @param {{ticks: Tick[], y: number, from: number, to: number}} props */
export function BottomAxis({ ticks, y, from, to }) {
  let end = -BETWEEN;
  const texts = ticks.flatMap(({ at, text }) => {
    const half = textWidth(text) / 2;
    const x = Math.max(Math.min(at, to + EDGE - half), half);
    if (x - half < end + BETWEEN) return [];
    end = x + half;
    return [{ x, text }];
  });
  return html`<g class="axis">
    <path d=${`M${from},${y}H${to}${ticks.map(({ at }) => `M${at},${y}v4`).join("")}`} />
    ${texts.map(({ x, text }) => html`<text x=${x} y=${y + 17} text-anchor="middle">${text}</text>`)}
  </g>`;
}

/** Pixels that texts to the left of a drawing take, at least as many as usual. @param {Tick[]} ticks @param {number} usual */
export const leftRoom = (ticks, usual) => Math.ceil(Math.max(usual, ...ticks.map(({ text }) => textWidth(text) + BETWEEN + 2)));

/** Ticks to the left of a drawing, with lines across it. @param {{ticks: Tick[], x: number, to: number}} props */
export const LeftAxis = ({ ticks, x, to }) => html`
  <g class="axis">
    <path class="across" d=${ticks.map(({ at }) => `M${x},${at}H${to}`).join("")} />
    ${ticks.map(({ at, text }) => html`<text x=${x - 6} y=${at + 4} text-anchor="end">${text}</text>`)}
  </g>
`;

const NAMES = 0.42; // of the width that names beside a drawing may take

/** Names to the left of a drawing, and the pixels that they take. @param {string[]} names @param {number} width of both */
export function sideNames(names, width) {
  const room = Math.ceil(Math.min(Math.max(...names.map(textWidth), 24), NAMES * width));
  return { room, texts: names.map((name) => fitted(name, room)) };
}

// Hundreds of marks are one path: a browser lays out and paints one element faster than as many.

/** @param {{x: number, y: number, width: number, height: number}[]} boxes */
export const boxesPath = (boxes) => boxes.map(({ x, y, width, height }) => `M${tenths(x)},${tenths(y)}h${tenths(width)}v${tenths(height)}h${tenths(-width)}z`).join("");

/** @param {[number, number][]} points @param {number} r radius */
export const circlesPath = (points, r) => points.map(([x, y]) => `M${tenths(x - r)},${tenths(y)}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`).join("");

/** @param {number} value in pixels */
export const tenths = (value) => Math.round(value * 10) / 10;

/** Runs of points without gaps. @template T @param {T[]} points @param {(point: T) => boolean} there @returns {T[][]} */
export function runs(points, there) {
  /** @type {T[][]} */
  const result = [];
  let open = false;
  for (const point of points) {
    if (there(point)) {
      if (!open) result.push([]);
      result[result.length - 1].push(point);
    }
    open = there(point);
  }
  return result;
}
