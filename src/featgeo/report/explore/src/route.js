// Every view has an address: the part after #, so that back, forward and links work.
import { signal } from "@preact/signals";
import { columns, pairs } from "./data.js";

/** @typedef {{view: string, columns: number[]}} Route */

const LONGEST = 200; // characters of a name in an address; longer ones are named by their place
const VIEWS = ["overview", "matrix", "pair", "column", "target", "given", "graph"];

/** How an address names a column. @param {number} column */
function slug(column) {
  const name = columns[column].name;
  try {
    const text = encodeURIComponent(name);
    return text && text.length <= LONGEST && !name.startsWith("~") ? text : `~${column}`;
  } catch {
    return `~${column}`; // halves of characters, which no address can hold
  }
}

const known = new Map(columns.map((_, i) => [slug(i), i]));

/** @param {string} view @param {...number} names columns */
export const href = (view, ...names) => `#${[view, ...names.map(slug)].join("/")}`;

/** @param {number} k a pair */
export const pairHref = (k) => href("pair", pairs.a[k], pairs.b[k]);

/** @param {string} hash @returns {Route} */
export function parsed(hash) {
  const [view, ...names] = hash.replace(/^#/, "").split("/");
  const places = names.map((name) => known.get(name) ?? known.get(recoded(name)) ?? -1);
  if (!VIEWS.includes(view)) return { view: "overview", columns: [] };
  return { view, columns: places.filter((place) => place >= 0) };
}

/** An address that somebody typed, as it would be written here. @param {string} name */
function recoded(name) {
  try {
    return encodeURIComponent(decodeURIComponent(name));
  } catch {
    return name;
  }
}

export const route = signal(parsed(location.hash));
addEventListener("hashchange", () => {
  route.value = parsed(location.hash);
});

/** @param {string} address */
export function go(address) {
  location.hash = address;
}

// A page inside a frame, as in notebooks, has no address of its own that links could be relative to.
if (location.protocol === "about:") {
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(link.getAttribute("href") ?? "");
  });
}
