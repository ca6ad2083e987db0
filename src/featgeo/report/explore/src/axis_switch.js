// Switches between scales of the two columns of a pair.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { modesOf, preferredMode } from "./axis.js";
import { short } from "./format.js";
import { Switch } from "./parts.js";

/** @typedef {import("./data.js").Column} Column @typedef {import("./axis.js").Mode} Mode */

const WORDS = { value: "values", log: "logarithm", rank: "ranks", step: "even steps" };

/** Switches for some columns, and the mode that is chosen for each. @param {...Column} some @returns {[any, (column: Column) => Mode]} */
export function axisModes(...some) {
  const [chosen, setChosen] = useState(/** @type {Record<string, Mode>} */ ({}));
  const mode = (/** @type {Column} */ column) => (column.kind === "label" ? "value" : chosen[column.name] ?? preferredMode(column));
  const switches = some.filter((column) => column.kind !== "label" && column.cells).map((column) => html`<div class="labelled" key=${column.name}>
    <span>Scale of <bdi>${short(column.name, 24)}</bdi></span>
    <${Switch} label=${`Scale of ${short(column.name, 40)}`} options=${modesOf(column).map((one) => [one, WORDS[one]])} value=${mode(column)}
      onChange=${(/** @type {Mode} */ one) => setChosen({ ...chosen, [column.name]: one })} />
  </div>`);
  return [switches.length ? html`<div class="controls">${switches}</div>` : null, mode];
}
