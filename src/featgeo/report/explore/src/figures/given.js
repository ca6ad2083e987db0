// One column given another: mean and quantile bands of numbers, stacked shares of labels.
import { area, line } from "d3-shape";
import { scaleLinear } from "d3-scale";
import { html } from "htm/preact";
import { axisOf, isListed, mostTicks, preferredMode, ticksOf, valueScale } from "../axis.js";
import { tone } from "../colours.js";
import { cellName, count, percent, short, valueOf } from "../format.js";
import { Figure, Table, useWidth } from "../parts.js";
import { dark } from "../scheme.js";
import { BottomAxis, LeftAxis, boxesPath, circlesPath, leftRoom, sideNames } from "./frame.js";
import { MOST_LABELS } from "./functions.js";

/**
 * @typedef {import("../data.js").Column} Column
 * @typedef {import("../data.js").Given} Given
 * @typedef {{own: Column, other: Column, given: Given, points: number[], mode: import("../axis.js").Mode, found: boolean}} Props points: cells of `own`
 */

const HEIGHT = 260;
const FOOT = 26;
const NARROW = 1e-6; // of the range of a column: what differs less is the same, but for rounding
const LEVELS = /** @type {const} */ (["q05", "q25", "q50", "q75", "q95"]);

/** @param {Props} props */
export function GivenFigure(props) {
  const { own, other, given, found } = props;
  const names = html`<strong><bdi>${short(other.name, 50)}</bdi> given <bdi>${short(own.name, 50)}</bdi></strong>`;
  return html`<${Figure} className=${found ? "" : "chance"} caption=${names} label=${said(props)} table=${() => html`<${GivenTable} ...${props} />`}>
    ${given.share ? html`<${Shares} ...${props} />` : html`<${Bands} ...${props} />`}
  <//>`;
}

/** @param {Props} props */
function said({ own, other, given, points }) {
  const names = `${short(other.name, 40)} given ${short(own.name, 40)}`;
  if (given.share) {
    const first = given.share.findIndex((one) => one !== null);
    return `Shares of ${names}, in ${given.share.length} cells, from ${first < 0 ? "nowhere" : cellName(own, points[first])} on`;
  }
  const middle = given.q50 ?? [];
  const there = points.map((cell, i) => ({ cell, value: middle[i] })).filter((one) => one.value !== null);
  if (!there.length) return `${names}: no rows`;
  const order = [...there].sort((a, b) => Number(a.value) - Number(b.value));
  const [low, high] = [order[0], order[order.length - 1]];
  return `Quantiles of ${names}: the median is lowest, ${valueOf(other, low.value)}, at ${cellName(own, low.cell)}, and highest, ${valueOf(other, high.value)}, at ${cellName(own, high.cell)}`;
}

/** @param {Props} props */
function GivenTable({ own, other, given, points }) {
  const rows = own.cells?.rows ?? [];
  if (given.share) {
    const labels = given.labels ?? [];
    return html`<${Table}
      caption="Shares by the modes, and as observed"
      heads=${["cell", "rows", ...labels.map((cell) => cellName(other, cell))]}
      numbers=${labels.length + 1}
      rows=${points.flatMap((cell, i) => given.share?.[i] ? [[cellName(own, cell), count(rows[cell]), ...labels.map((_, l) => {
        const [share, seen] = [Number(given.share?.[i]?.[l]), given.observed?.[i]?.[l]];
        return `${percent(share / 1000)}${seen === undefined || seen === null ? "" : ` (${percent(seen / 1000)})`}`;
      })]] : [])}
    />`;
  }
  return html`<${Table}
    caption="Mean and quantiles by the modes, and the observed mean"
    heads=${["cell", "rows", "mean", "observed mean", "5%", "25%", "median", "75%", "95%"]}
    numbers=${8}
    rows=${points.flatMap((cell, i) => hasRows(given, i) ? [[cellName(own, cell), count(rows[cell]), valueOf(other, given.mean?.[i]), valueOf(other, given.observed_mean?.[i]), ...LEVELS.map((level) => valueOf(other, given[level]?.[i]))]] : [])}
  />`;
}

/** Whether a number is known given a cell. @param {Given} given @param {number} i */
const hasRows = (given, i) => given.q50?.[i] !== null && given.q50?.[i] !== undefined;

/** How many labels are left out of a drawing. @param {{own: Column, points: number[], shown: number, there: (i: number) => boolean}} props */
function LeftOut({ own, points, shown, there }) {
  const more = own.kind === "label" ? points.filter((_, i) => there(i)).length - shown : 0;
  return more > 0 ? html`<p class="aside">${more} more ${more === 1 ? "label is" : "labels are"} in the table.</p>` : null;
}

/** The cells that are drawn: all of numbers, the most frequent labels. @param {Column} own @param {number[]} points @param {(i: number) => boolean} there */
function drawn(own, points, there) {
  const rows = own.cells?.rows ?? [];
  const all = points.map((cell, i) => ({ cell, i, rows: rows[cell] })).filter((one) => there(one.i));
  return own.kind === "label" ? all.sort((a, b) => b.rows - a.rows).slice(0, MOST_LABELS) : all;
}

/** @param {Props} props */
function Bands({ own, other, given, points, mode }) {
  const [ref, width] = useWidth("half");
  const cells = drawn(own, points, (i) => hasRows(given, i));
  const values = cells.flatMap(({ i }) => [given.q05?.[i], given.q95?.[i], given.mean?.[i]]).filter((v) => v !== null).map(Number);
  const domain = domainOf(other, values);
  const scaled = preferredMode(other);
  const inner = !width || !cells.length
    ? null
    : isListed(own)
      ? html`<${Ranges} ...${{ cells, own, other, given, width, domain, scaled }} />`
      : html`<${Ribbon} ...${{ cells, own, other, given, width, domain, scaled, mode }} />`;
  return html`<div ref=${ref} class="drawing">${inner}</div>
    <p class="legend">
      <span><span class="key wide"></span> 5% to 95%</span> <span><span class="key close"></span> 25% to 75%</span>
      <span><span class="key middle"></span> median</span> <span><span class="key mean"></span> mean</span>
      <span><span class="key seen"></span> observed mean</span>
    </p>
    <${LeftOut} own=${own} points=${points} shown=${cells.length} there=${(/** @type {number} */ i) => hasRows(given, i)} />`;
}

/** From the least to the largest of some values. @param {Column} column that has them @param {number[]} values @returns {[number, number]} */
function domainOf(column, values) {
  const [least, largest] = [Math.min(...values), Math.max(...values)];
  const [low, high] = [column.cells?.low?.[0] ?? least, column.cells?.high?.at(-1) ?? largest];
  return largest - least > NARROW * (high - low) ? [least, largest] : [low, high];
}

/** @param {any} props */
function Ribbon({ cells, own, other, given, width, domain, scaled, mode }) {
  const y = valueScale(other, domain, [HEIGHT - FOOT, 10], scaled);
  const sides = ticksOf(other, y, 5);
  const left = leftRoom(sides, 58);
  const range = /** @type {[number, number]} */ ([left, width - 8]);
  const axis = axisOf(own, range, mode);
  const x = (/** @type {any} */ one) => axis.at(one.cell);
  const at = (/** @type {string} */ level) => (/** @type {any} */ one) => y(given[level][one.i]);
  const band = (/** @type {string} */ low, /** @type {string} */ high) => area(x, at(low), at(high))(cells);
  const path = (/** @type {string} */ level) => line(x, at(level))(cells);
  const seen = cells.filter((/** @type {any} */ one) => given.observed_mean[one.i] !== null);
  const inside = seen.filter((/** @type {any} */ one) => given.observed_mean[one.i] >= domain[0] && given.observed_mean[one.i] <= domain[1]);
  return html`<svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`}>
    <${LeftAxis} ticks=${sides} x=${left} to=${range[1]} />
    <path class="band wide" d=${band("q05", "q95")} />
    <path class="band close" d=${band("q25", "q75")} />
    <path class="curve" d=${path("q50")} />
    <path class="mean" d=${path("mean")} />
    <path class="seen" d=${circlesPath(inside.map((/** @type {any} */ one) => [x(one), y(given.observed_mean[one.i])]), 2.2)} />
    <${BottomAxis} ticks=${axis.ticks} y=${HEIGHT - FOOT} from=${left} to=${range[1]} />
  </svg>`;
}

/** @param {any} props */
function Ranges({ cells, own, other, given, width, domain, scaled }) {
  if (own.kind === "label") cells.sort((/** @type {any} */ one, /** @type {any} */ two) => given.mean[one.i] - given.mean[two.i]);
  const { room: names, texts } = sideNames(cells.map((/** @type {any} */ one) => cellName(own, one.cell)), width);
  const x = valueScale(other, domain, [names + 12, width - 14], scaled);
  const step = 25;
  const height = cells.length * step + FOOT + 4;
  return html`<svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${cells.map((/** @type {any} */ one, /** @type {number} */ place) => {
      const y = place * step + step / 2 + 2;
      const at = (/** @type {string} */ level) => x(given[level][one.i]);
      const seen = given.observed_mean[one.i];
      return html`<g key=${one.cell}>
        <text class="label" x=${names} y=${y + 4} text-anchor="end">${texts[place]}</text>
        <rect class="band wide" x=${at("q05")} width=${Math.max(at("q95") - at("q05"), 1)} y=${y - 4} height="8" rx="2" />
        <rect class="band close" x=${at("q25")} width=${Math.max(at("q75") - at("q25"), 1)} y=${y - 7} height="14" rx="2" />
        <line class="median" x1=${at("q50")} x2=${at("q50")} y1=${y - 9} y2=${y + 9} />
        <line class="mean" x1=${at("mean")} x2=${at("mean")} y1=${y - 9} y2=${y + 9} />
        ${seen === null || seen < domain[0] || seen > domain[1] ? null : html`<circle class="seen" cx=${x(seen)} cy=${y} r="2.6" />`}
      </g>`;
    })}
    <${BottomAxis} ticks=${ticksOf(other, x, mostTicks(other, width - names))} y=${height - FOOT} from=${names + 12} to=${width - 14} />
  </svg>`;
}

/** @param {Props} props */
function Shares({ own, other, given, points, mode }) {
  const [ref, width] = useWidth("half");
  const cells = drawn(own, points, (i) => Boolean(given.share?.[i]));
  const labels = given.labels ?? [];
  const rest = (other.cells?.rows.filter((n) => n > 0).length ?? 0) > labels.length;
  const stacks = cells.map(({ cell, i }) => {
    let before = 0;
    const parts = (given.share?.[i] ?? []).map((share) => [before, (before += share / 1000)]);
    return { cell, parts: rest ? [...parts, [before, 1]] : parts };
  });
  const colour = (/** @type {number} */ l) => tone(l === labels.length ? 7 : l, dark.value);
  return html`<div ref=${ref} class="drawing">
      ${!width ? null : isListed(own) ? html`<${StackedRows} ...${{ stacks, own, width, colour }} />` : html`<${StackedArea} ...${{ stacks, own, width, colour, mode }} />`}
    </div>
    <p class="legend">
      ${labels.map((cell, l) => html`<span key=${cell}><svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" fill=${colour(l)} /></svg> <bdi>${short(cellName(other, cell), 28)}</bdi></span> `)}
      ${rest ? html`<span><svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" fill=${colour(labels.length)} /></svg> all other labels</span>` : null}
    </p>
    <${LeftOut} own=${own} points=${points} shown=${cells.length} there=${(/** @type {number} */ i) => Boolean(given.share?.[i])} />`;
}

const SHARE_TICKS = [0, 0.25, 0.5, 0.75, 1];

/** @param {any} props */
function StackedArea({ stacks, own, width, colour, mode }) {
  const left = 46;
  const range = /** @type {[number, number]} */ ([left, width - 8]);
  const axis = axisOf(own, range, mode);
  const y = scaleLinear([0, 1], [HEIGHT - FOOT, 10]);
  const middles = stacks.map((/** @type {any} */ one) => axis.at(one.cell));
  const ends = middles.map((/** @type {number} */ at, /** @type {number} */ i) => (i ? (middles[i - 1] + at) / 2 : axis.span(stacks[0].cell)[0]));
  ends.push(stacks.length ? axis.span(stacks[stacks.length - 1].cell)[1] : range[1]);
  const layer = (/** @type {number} */ l) => boxesPath(stacks.flatMap((/** @type {any} */ one, /** @type {number} */ i) => {
    const [low, high] = one.parts[l].map(y);
    return low > high ? [{ x: ends[i], width: Math.max(ends[i + 1] - ends[i], 0.5) + 0.4, y: high, height: Math.max(low - high - 0.6, 0.2) }] : [];
  }));
  return html`<svg width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`}>
    ${stacks[0]?.parts.map((/** @type {any} */ _, /** @type {number} */ l) => html`<path class="share" d=${layer(l)} fill=${colour(l)} />`)}
    <${LeftAxis} ticks=${SHARE_TICKS.map((share) => ({ at: y(share), text: percent(share) }))} x=${left} to=${left} />
    <${BottomAxis} ticks=${axis.ticks} y=${HEIGHT - FOOT} from=${left} to=${range[1]} />
  </svg>`;
}

/** @param {any} props */
function StackedRows({ stacks, own, width, colour }) {
  if (own.kind === "label") stacks.sort((/** @type {any} */ one, /** @type {any} */ two) => two.parts[0][1] - one.parts[0][1]);
  const { room: names, texts } = sideNames(stacks.map((/** @type {any} */ one) => cellName(own, one.cell)), width);
  const x = scaleLinear([0, 1], [names + 12, width - 18]);
  const step = 25;
  const height = stacks.length * step + FOOT + 4;
  return html`<svg width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${stacks.map((/** @type {any} */ one, /** @type {number} */ place) => html`<g key=${one.cell}>
      <text class="label" x=${names} y=${place * step + step / 2 + 6} text-anchor="end">${texts[place]}</text>
      ${one.parts.map((/** @type {number[]} */ [low, high], /** @type {number} */ l) =>
        high > low ? html`<rect class="share" x=${x(low)} width=${Math.max(x(high) - x(low) - 0.8, 0.2)} y=${place * step + 4} height=${step - 6} fill=${colour(l)} />` : null,
      )}
    </g>`)}
    <${BottomAxis} ticks=${(width < 460 ? [0, 0.5, 1] : SHARE_TICKS).map((share) => ({ at: x(share), text: percent(share) }))} y=${height - FOOT} from=${names + 12} to=${width - 18} />
  </svg>`;
}
