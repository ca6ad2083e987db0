// Axes around a drawing.
import { html } from "htm/preact";

/** Ticks below a drawing. @param {{ticks: {at: number, text: string}[], y: number, from: number, to: number}} props */
export const BottomAxis = ({ ticks, y, from, to }) => html`
  <g class="axis">
    <line x1=${from} x2=${to} y1=${y} y2=${y} />
    ${ticks.map(
      ({ at, text }) => html`<g key=${text}>
        <line x1=${at} x2=${at} y1=${y} y2=${y + 4} />
        <text x=${Math.min(Math.max(at, from + text.length * 3), to - text.length * 2.6)} y=${y + 17} text-anchor="middle">${text}</text>
      </g>`,
    )}
  </g>
`;

/** Ticks to the left of a drawing, with lines across it. @param {{ticks: {at: number, text: string}[], x: number, to: number}} props */
export const LeftAxis = ({ ticks, x, to }) => html`
  <g class="axis">
    ${ticks.map(
      ({ at, text }) => html`<g key=${text}>
        <line class="across" x1=${x} x2=${to} y1=${at} y2=${at} />
        <text x=${x - 6} y=${at + 4} text-anchor="end">${text}</text>
      </g>`,
    )}
  </g>
`;

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
