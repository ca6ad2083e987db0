// Switches between scales of the two columns of a pair.
import { html } from "htm/preact";
import { useState } from "preact/hooks";
import { isListed, modesOf, preferredMode } from "./axis.js";
import { short } from "./format.js";
import { Switch } from "./parts.js";

/** @typedef {import("./data.js").Column} Column @typedef {import("./axis.js").Mode} Mode */

const WORDS = { value: "values", log: "logarithm", rank: "ranks", step: "even steps" };

/** @type {Mode[]} */
export const OF_VALUES = ["value", "log"];
/** @type {Mode[]} */
const EVERY = [...OF_VALUES, "rank", "step"];

/** Switches for some columns, and the mode that is chosen for each. @param {Column[]} some @param {Mode[]} [offered] @returns {[any, (column: Column) => Mode]} */
export function axisModes(some, offered = EVERY) {
  const [chosen, setChosen] = useState(/** @type {Record<string, Mode>} */ ({}));
  const modes = (/** @type {Column} */ column) => (isListed(column) || !column.cells ? [] : modesOf(column).filter((one) => offered.includes(one)));
  const mode = (/** @type {Column} */ column) => modes(column).find((one) => one === (chosen[column.name] ?? preferredMode(column))) ?? "value";
  const switches = some.filter((column) => modes(column).length > 1).map((column) => html`<div class="labelled" key=${column.name}>
    <span>Scale of <bdi>${short(column.name, 24)}</bdi></span>
    <${Switch} label=${`Scale of ${short(column.name, 40)}`} options=${modes(column).map((one) => [one, WORDS[one]])} value=${mode(column)}
      onChange=${(/** @type {Mode} */ one) => setChosen({ ...chosen, [column.name]: one })} />
  </div>`);
  return [switches.length ? html`<div class="controls">${switches}</div>` : null, mode];
}
