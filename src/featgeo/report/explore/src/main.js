// The page: a head with all views, and the one that the address names.
import { effect } from "@preact/signals";
import { html } from "htm/preact";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { columns, data, isRead, nPairs, pairOf } from "./data.js";
import { short } from "./format.js";
import { Switch } from "./parts.js";
import { href, pairHref, route } from "./route.js";
import { chosen, dark } from "./scheme.js";
import { Column } from "./views/column.js";
import { Given } from "./views/given.js";
import { Graph } from "./views/graph.js";
import { Matrix } from "./views/matrix.js";
import { Overview } from "./views/overview.js";
import { Pair, lastPair } from "./views/pair.js";
import { Target } from "./views/target.js";

/** @type {[string, string][]} */
const VIEWS = [["overview", "Overview"], ["matrix", "Matrix"], ["pair", "Pair"], ["column", "Columns"], ["target", "Target"], ["given", "Given"], ["graph", "Graph"]];
const SHOWN = /** @type {Record<string, (props: {names: number[]}) => any>} */ ({
  overview: Overview, matrix: Matrix, pair: Pair, column: Column, target: Target, given: Given, graph: Graph,
});

function App() {
  const { view, columns: names } = route.value;
  const here = isRead.value || view === "overview";
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const arrived = useRef(false);
  useEffect(() => {
    document.title = [VIEWS.find(([key]) => key === view)?.[1], ...names.map((i) => short(columns[i].name, 40)), data.title].join(" · ");
    const k = view === "pair" && isRead.value && names.length === 2 ? pairOf(names[0], names[1]) : -1;
    if (k >= 0) lastPair.value = k;
    if (arrived.current) {
      scrollTo(0, 0);
      /** @type {HTMLElement | null | undefined} */ (main.current?.querySelector("h1"))?.focus({ preventScroll: true });
    }
    arrived.current = here;
  }, [view, names.join("/"), here]);
  const View = SHOWN[view];
  const address = (/** @type {string} */ key) => (key === "pair" && isRead.value && nPairs ? pairHref(lastPair.value) : href(key));
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <nav aria-label="Views"><ul>
        ${VIEWS.map(([key, name]) => html`<li key=${key}><a href=${address(key)} aria-current=${key === view ? "page" : undefined}>${name}</a></li>`)}
      </ul></nav>
      <${Switch} label="Colours" options=${[["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]]} value=${chosen.value} onChange=${(/** @type {any} */ value) => (chosen.value = value)} />
    </header>
    <main id="main" tabindex="-1" ref=${main}>${here ? html`<${View} key=${view} names=${names} />` : html`<p class="aside" role="status">Reading the table …</p>`}</main>
    <footer><p>Made by featgeo ${data.version}. Strengths are those on rows that were held out; what may be chance is drawn in grey.</p></footer>
  `;
}

/** To the content, without leaving the view. @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

effect(() => {
  document.documentElement.dataset.scheme = dark.value ? "dark" : "light";
});
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} />`, root);
