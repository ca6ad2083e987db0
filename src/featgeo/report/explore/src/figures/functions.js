// A function of one mode on the cells of a column, over the density of the data.
import { curveMonotoneX, curveStep, line } from "d3-shape";
import { scaleLinear } from "d3-scale";
import { html } from "htm/preact";
import { axisOf, compact, densityOf, isListed, middleOf } from "../axis.js";
import { cellName, count, number, percent, short } from "../format.js";
import { Figure, Table, breakable, useWidth } from "../parts.js";
import { BottomAxis, LeftAxis, boxesPath, circlesPath, leftRoom, runs, sideNames, tenths } from "./frame.js";

const HEIGHT = 190;
const LEFT = 40;
const FOOT = 26;
export const MOST_LABELS = 14; // drawn; the table has all

/**
 * @typedef {import("../data.js").Column} Column
 * @typedef {{column: Column, values: (number | null)[], points: number[], letter: string, mode: import("../axis.js").Mode, found: boolean}} Props
 */

/** @param {Props} props values in thousandths, on the cells where curves are drawn */
export function FunctionFigure({ column, values, points, letter, mode, found }) {
  const rows = () => html`<${Table}
    caption=${`${letter} on the cells of the column`}
    heads=${["cell", "rows", letter]}
    numbers=${2}
    rows=${points.flatMap((cell, i) => values[i] === null ? [] : [[cellName(column, cell), count(column.cells?.rows[cell]), number(values[i] / 1000)]])}
  />`;
  const label = `${letter}, a function of ${short(column.name, 40)}: ${described(column, points, values)}`;
  return html`<${Figure} className=${found ? "" : "chance"} label=${label} table=${rows} caption=${html`<strong><span class="letter">${letter}</span> of <bdi>${short(column.name, 60)}</bdi></strong>`}>
    ${isListed(column)
      ? html`<${Bars} column=${column} values=${values} />`
      : html`<${Curve} column=${column} values=${values} points=${points} mode=${mode} />`}
  <//>`;
}

/** The cells on which curves are drawn. @param {Column} column @param {number[]} [own] those of a pair */
export const pointsOf = (column, own) => own ?? column.cells?.points ?? column.cells?.rows.map((_, i) => i) ?? [];

/** @param {Column} column @param {number[]} points @param {(number | null)[]} values */
function described(column, points, values) {
  const there = points.map((cell, i) => ({ cell, value: values[i] })).filter(({ value }) => value !== null);
  if (!there.length) return "no rows";
  const order = [...there].sort((a, b) => Number(a.value) - Number(b.value));
  const [lowest, highest] = [order[0], order[order.length - 1]];
  return `lowest, ${number(Number(lowest.value) / 1000)}, at ${cellName(column, lowest.cell)}; highest, ${number(Number(highest.value) / 1000)}, at ${cellName(column, highest.cell)}`;
}

/** @param {{column: Column, values: (number | null)[], points: number[], mode: import("../axis.js").Mode}} props */
function Curve({ column, values, points, mode }) {
  const [ref, width] = useWidth("half");
  const sizes = values.filter((value) => value !== null).map((value) => value / 1000);
  const y = scaleLinear([Math.min(0, ...sizes), Math.max(0, ...sizes)], [HEIGHT - FOOT, 10]).nice(4);
  const sides = y.ticks(4).map((value) => ({ at: y(value), text: compact(value) }));
  const left = leftRoom(sides, LEFT);
  const range = /** @type {[number, number]} */ ([left, Math.max(width - 8, left + 40)]);
  const axis = axisOf(column, range, mode);
  const all = points.map((cell, i) => ({ x: axis.at(cell), value: values[i] }));
  const path = line((/** @type {any} */ p) => p.x, (/** @type {any} */ p) => y(p.value / 1000)).curve(column.cells?.whole ? curveStep : curveMonotoneX);
  const floor = HEIGHT - FOOT;
  const bins = mode === "rank" || mode === "step" ? [] : densityOf(column, axis, range);
  const tall = bins.map((bin) => 0.8 * bin.height * (floor - 10));
  const density = boxesPath(bins.map((bin, i) => ({ x: bin.x, width: bin.width, y: floor - tall[i], height: tall[i] })));
  return html`<div ref=${ref} class="drawing">
    ${width
      ? html`<svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`}>
          <path class="density" d=${density} />
          <${LeftAxis} ticks=${sides} x=${left} to=${range[1]} />
          <line class="zero" x1=${left} x2=${range[1]} y1=${y(0)} y2=${y(0)} />
          <${BottomAxis} ticks=${axis.ticks} y=${floor} from=${left} to=${range[1]} />
          ${runs(all, (p) => p.value !== null).map((run) => html`<path class="curve" d=${path(run)} />`)}
          ${column.cells?.whole && all.length <= 40
            ? html`<path class="dot" d=${circlesPath(all.filter((p) => p.value !== null).map((p) => [p.x, y(Number(p.value) / 1000)]), 3)} />`
            : null}
        </svg>`
      : null}
  </div>`;
}

/** Labels from the highest value to the lowest, numbers in their order; the more rows, the broader the bar. @param {{column: Column, values: (number | null)[]}} props */
function Bars({ column, values }) {
  const [ref, width] = useWidth("half");
  const rows = column.cells?.rows ?? [];
  const seen = values.map((value, cell) => ({ cell, value, rows: rows[cell] })).filter((one) => one.value !== null);
  const shown = seen
    .sort((a, b) => b.rows * Number(b.value) ** 2 - a.rows * Number(a.value) ** 2)
    .slice(0, MOST_LABELS)
    .sort((a, b) => (column.kind === "label" ? Number(b.value) - Number(a.value) : a.cell - b.cell));
  const { room: names, texts } = sideNames(shown.map((one) => cellName(column, one.cell)), width);
  const sizes = shown.map((one) => Number(one.value) / 1000);
  const x = scaleLinear([Math.min(0, ...sizes), Math.max(0, ...sizes)], [names + 10, Math.max(width - 12, names + 40)]).nice(3);
  const step = 24;
  const height = shown.length * step + FOOT + 4;
  const most = Math.max(...shown.map((one) => one.rows), 1);
  return html`<div ref=${ref} class="drawing">
    ${width
      ? html`<svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
          <line class="zero" x1=${x(0)} x2=${x(0)} y1="0" y2=${height - FOOT} />
          ${shown.map((one, i) => {
            const at = x(Number(one.value) / 1000);
            const thick = 4 + 13 * Math.sqrt(one.rows / most);
            const middle = i * step + step / 2 + 2;
            return html`<g key=${one.cell}>
              <text class="label" x=${names} y=${middle + 4} text-anchor="end">${texts[i]}</text>
              <rect class=${Number(one.value) < 0 ? "below" : "above"} x=${Math.min(at, x(0))} width=${Math.max(Math.abs(at - x(0)), 1)} y=${middle - thick / 2} height=${thick} rx="1.5" />
            </g>`;
          })}
          <${BottomAxis} ticks=${x.ticks(3).map((value) => ({ at: x(value), text: compact(value) }))} y=${height - FOOT} from=${names + 10} to=${Math.max(width - 12, names + 40)} />
        </svg>`
      : null}
    ${seen.length > shown.length ? html`<p class="aside">${seen.length - shown.length} more labels are in the table.</p>` : null}
  </div>`;
}

/** The rows of a column along its axis. @param {{column: Column, mode: import("../axis.js").Mode}} props */
export function Distribution({ column, mode }) {
  const rows = column.cells?.rows ?? [];
  const table = () => html`<${Table} caption="Rows in each cell" heads=${["cell", "rows"]} numbers=${1} rows=${rows.flatMap((n, cell) => n ? [[cellName(column, cell), count(n)]] : [])} />`;
  const isCut = !isListed(column) && mode === "value" && middleOf(column) !== column;
  const caption = html`<strong>Distribution</strong>${isCut ? " without the outermost 1% of the rows at either end" : ""}`;
  return html`<${Figure} caption=${caption} label=${`Distribution over ${rows.length} cells; most rows, ${count(Math.max(...rows))}, at ${cellName(column, rows.indexOf(Math.max(...rows)))}`} table=${table}>
    ${isListed(column) ? html`<${CellRows} column=${column} />` : html`<${Histogram} column=${mode === "value" ? middleOf(column) : column} mode=${mode} />`}
  <//>`;
}

/** @param {{column: Column, mode: import("../axis.js").Mode}} props */
function Histogram({ column, mode }) {
  const [ref, width] = useWidth("functions Histogram");
  const range = /** @type {[number, number]} */ ([12, Math.max(width - 12, 60)]);
  const axis = axisOf(column, range, mode);
  const bins = densityOf(column, axis, range);
  const floor = HEIGHT - FOOT;
  const steps = bins.map((bin) => `V${tenths(floor - bin.height * (floor - 10))}H${tenths(bin.x + bin.width)}`);
  return html`<div ref=${ref} class="drawing">
    ${width
      ? html`<svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`}>
          <path class="histogram" d=${`M${tenths(bins[0].x)},${floor}${steps.join("")}V${floor}z`} />
          <${BottomAxis} ticks=${axis.ticks} y=${floor} from=${range[0]} to=${range[1]} />
        </svg>`
      : null}
  </div>`;
}

/** @param {{column: Column}} props */
function CellRows({ column }) {
  const rows = column.cells?.rows ?? [];
  const most = Math.max(...rows, 1);
  const all = rows.map((n, cell) => ({ n, cell })).filter((one) => one.n);
  const total = rows.reduce((sum, n) => sum + n, 0);
  const first = MOST_LABELS + 6;
  const others = column.kind === "label" ? all.findIndex((one) => one.cell === rows.length - 1) : -1; // which may hold most rows of all
  const shown = all.filter((_, i) => i < first - (others >= first ? 1 : 0) || i === others);
  return html`<ul class="bars" aria-hidden="true">
      ${shown.map(
        ({ n, cell }) => html`<li>
          <bdi class="name">${breakable(cellName(column, cell))}</bdi>
          <svg class="row-bar" viewBox="0 0 100 10" preserveAspectRatio="none"><rect width=${(100 * n) / most} height="10" /></svg>
          <span class="number">${percent(n / total, 1)}</span>
        </li>`,
      )}
    </ul>
    ${all.length > shown.length ? html`<p class="aside">${all.length - shown.length} more labels are in the table.</p>` : null}`;
}
