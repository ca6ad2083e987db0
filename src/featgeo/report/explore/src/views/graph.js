// Direct dependences: pairs that still depend once all other columns are known.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { columns, data, pairOf } from "../data.js";
import { count, fitted, pvalue, short, strength, textWidth } from "../format.js";
import { Code, ColumnLink, Figure, Table, loading, useWidth } from "../parts.js";
import { go, href } from "../route.js";

export function Graph() {
  const graph = data.graph;
  if (!graph) {
    return html`<h1 tabindex="-1">Direct dependences</h1>
      <p>With so many columns it takes long to look at each pair given all others, and this page was written without. These lines do it.</p>
      <${Code} lines=${[...loading(), "found.direct.to_frame()"]} />`;
  }
  return html`<${Drawn} graph=${graph} />`;
}

const FEW = 12; // lines at first on narrow screens

/** @param {{graph: import("../data.js").Graph}} props */
function Drawn({ graph }) {
  const { a, b, strength: own, pvalue: p, nodes } = graph;
  const most = graph.drawn;
  const [drawn, setDrawn] = useState(Math.min(most, innerWidth < 500 ? FEW : 2 * nodes.length));
  const rows = () => html`<${Table} caption="Direct dependences" numbers=${3} heads=${["column", "column", "strength", "p", "pair"]}
    rows=${a.map((i, n) => [html`<${ColumnLink} column=${i} most=${32} />`, html`<${ColumnLink} column=${b[n]} most=${32} />`, strength(own[n]), pvalue(p[n]), pairOf(i, b[n]) < 0 ? "" : html`<a href=${href("pair", i, b[n])} aria-label=${`open ${short(columns[i].name, 40)} and ${short(columns[b[n]].name, 40)}`}>open</a>`])} />`;
  return html`
    <h1 tabindex="-1">Direct dependences</h1>
    <p class="lead">Two columns are joined where they still depend on each other once all other columns are known, by one function of each. What goes
      only through others is not joined. A line is no arrow: it does not say which is the cause. Columns that repeat each other take each other’s other lines away.</p>
    ${most > 3 ? html`<div class="controls"><label>Lines, the strongest first
      <input type="range" min="1" max=${most} value=${drawn} aria-valuetext=${`${drawn} of ${a.length}`} onInput=${(/** @type {any} */ event) => setDrawn(Number(event.target.value))} /></label></div>` : null}
    ${a.length
      ? html`<${Figure} className="graph-figure" table=${rows} caption=${drawn < a.length ? `The ${count(drawn)} strongest of ${count(a.length)} lines; the broader, the stronger.` : a.length === 1 ? "One line." : `${count(a.length)} lines; the broader, the stronger.`}
          label=${`Graph of ${nodes.length} columns and ${drawn} lines. Strongest: ${short(columns[a[0]].name, 40)} and ${short(columns[b[0]].name, 40)}, ${strength(own[0])}`}>
          <${Net} graph=${graph} drawn=${drawn} />
        <//>`
      : html`<p>No pair depends on each other once all others are known, beyond what chance gives.</p>`}
    <section aria-labelledby="python"><h2 id="python">The same in Python</h2><${Code} lines=${[...loading(), "found.direct.to_frame()"]} /></section>
  `;
}

const APART = [74, 40]; // pixels between two points, at least: across, for their names, and down
const ROUNDS = 60; // in which points that are too close leave each other
const HIGHER = 1.7; // than it is laid out a graph is drawn on narrow screens, for its names
const PLACES = [-10, 20, -23, 33]; // where a name stands, from its point

/** Points that keep off each other, inside a frame. @param {number[][]} points @param {number} width @param {number} height @param {number[]} margin */
function spread(points, width, height, margin) {
  const at = points.map(([x, y]) => [x, y]);
  const inside = (/** @type {number} */ value, /** @type {number} */ axis) => Math.min(Math.max(value, margin[axis]), (axis ? height : width) - margin[axis]);
  for (let round = 0; round < ROUNDS; round++) {
    at.forEach((one, i) => at.slice(0, i).forEach((two) => {
      const gap = [0, 1].map((axis) => (one[axis] - two[axis]) / APART[axis]);
      const distance = Math.hypot(...gap);
      if (distance >= 1) return;
      const away = distance ? gap.map((part) => part / distance) : [0, 1];
      away.forEach((part, axis) => {
        const step = (part * (1 - distance) * APART[axis]) / 4;
        one[axis] = inside(one[axis] + step, axis);
        two[axis] = inside(two[axis] - step, axis);
      });
    }));
  }
  return at;
}

/** Names beside their points, where there is room. @param {{text: string, at: number[]}[]} nodes @param {number} width @param {number} height */
function labelled(nodes, width, height) {
  /** @type {{x: number, y: number, half: number}[]} */
  const taken = nodes.map(({ at }) => ({ x: at[0], y: at[1] + 4, half: 6 }));
  return nodes.map(({ text, at }) => {
    const half = textWidth(text) / 2;
    const x = Math.min(Math.max(at[0], half + 2), width - half - 2);
    const free = (/** @type {number} */ y) => y > 10 && y < height && taken.every((one) => Math.abs(one.x - x) > one.half + half || Math.abs(one.y - y) > 12);
    const away = PLACES.find((one) => free(at[1] + one));
    if (away === undefined) return { x, y: 0, text: "" };
    taken.push({ x, y: at[1] + away, half });
    return { x, y: at[1] + away, text };
  });
}

/** @param {{graph: import("../data.js").Graph, drawn: number}} props `drawn` lines; columns without one are left out */
function Net({ graph, drawn }) {
  const [ref, width] = useWidth("graph Net");
  const [at, setAt] = useState(-1);
  const { at: points, a, b, strength: own } = graph;
  const lines = Array.from({ length: drawn }, (_, n) => n);
  const ends = new Set(lines.flatMap((n) => [a[n], b[n]]));
  const seen = points.filter((_, i) => ends.has(graph.nodes[i])); // columns without a line leave no room empty
  const [left, top] = [0, 1].map((axis) => Math.min(...seen.map((point) => point[axis])));
  const [wide, tall] = [left, top].map((first, axis) => Math.max(...seen.map((point) => point[axis] - first), 0.05));
  const isNarrow = width < 500;
  const [side, edge] = [isNarrow ? 54 : 90, 26];
  const room = Math.max(width - 2 * side, 60);
  const height = Math.min((room * tall * (isNarrow ? HIGHER : 1)) / wide, isNarrow ? 520 : 760) + 2 * edge;
  const laid = seen.map(([x, y]) => [side + ((x - left) / wide) * room, edge + ((y - top) / tall) * (height - 2 * edge)]);
  const there = graph.nodes.filter((node) => ends.has(node));
  const places = spread(laid, width, height, [side, edge]);
  const place = new Map(there.map((node, i) => [node, places[i]]));
  const nodes = [...there].sort((i, j) => Number(j === data.target) - Number(i === data.target));
  const near = new Set(at < 0 ? nodes : lines.filter((n) => a[n] === at || b[n] === at).flatMap((n) => [a[n], b[n]]));
  const most = isNarrow ? 92 : nodes.length > 40 ? 150 : 200; // pixels of a name
  const labels = labelled(nodes.map((node) => ({ text: fitted(columns[node].name, most), at: place.get(node) ?? [0, 0] })), width, height);
  return html`<div ref=${ref} class="drawing">${width ? html`<svg class="net" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${lines.map((n) => {
      const [from, to] = [place.get(a[n]) ?? [0, 0], place.get(b[n]) ?? [0, 0]];
      const isNear = at < 0 || a[n] === at || b[n] === at;
      return html`<line key=${n} class=${isNear ? "edge" : "edge far"} x1=${from[0]} y1=${from[1]} x2=${to[0]} y2=${to[1]} stroke-width=${1 + 7 * Math.min(own[n], 1)} />`;
    })}
    ${nodes.map((node, i) => {
      const [x, y] = place.get(node) ?? [0, 0];
      return html`<g key=${node} class=${near.has(node) || node === at ? "node" : "node far"} onPointerEnter=${() => setAt(node)} onPointerLeave=${() => setAt(-1)} onClick=${() => go(href("column", node))}>
        <title>${short(columns[node].name, 100)}</title>
        <circle cx=${x} cy=${y} r=${node === data.target ? 8 : 5.5} class=${node === data.target ? "target" : ""} />
        <text x=${labels[i].x} y=${labels[i].y} text-anchor="middle">${labels[i].text}</text>
      </g>`;
    })}
  </svg>` : null}</div>`;
}
