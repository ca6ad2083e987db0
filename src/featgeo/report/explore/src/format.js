// Numbers, dates and names as readers see them.

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
export const NONE = "–";

/** Digits raised, for powers of ten. @param {number} power */
const raised = (power) => (power < 0 ? "⁻" : "") + [...String(Math.abs(power))].map((d) => RAISED[Number(d)]).join("");

/** @param {number | null | undefined} value @param {number} [digits] that count */
export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(Number(value.toPrecision(digits)));
  const sign = value < 0 ? "−" : "";
  if (Number.isInteger(value) && size < 1e9) return sign + grouped(Math.abs(value));
  if (size >= 1e6 || size < 1e-3) {
    const [mantissa, power] = Math.abs(value).toExponential(digits - 1).split("e");
    return `${sign}${mantissa}×10${raised(Number(power))}`;
  }
  if (size >= 10 ** digits) return sign + grouped(Math.round(Math.abs(value)));
  return sign + Math.abs(value).toPrecision(digits);
}

/** Whole numbers with commas. @param {number} value */
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, ",");

/** @param {number | null | undefined} value */
export const count = (value) => (value === null || value === undefined ? NONE : grouped(Math.round(value)));

/** Strengths in hundredths. @param {number | null | undefined} value */
export function strength(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const text = Math.abs(value).toFixed(2);
  return value < 0 && text !== "0.00" ? `−${text}` : text;
}

/** @param {number | null | undefined} value */
export function pvalue(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  if (value <= 1e-290) return "<\u00a010⁻²⁹⁰"; // tails are not followed any further
  return value < 1e-3 ? number(value, 1) : number(value, 2);
}

/** @param {number | null | undefined} value a share @param {number} [digits] after the point */
export function percent(value, digits = 0) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const text = `${(100 * value).toFixed(digits)}%`.replace("-", "−");
  return value > 0 && Number((100 * value).toFixed(digits)) === 0 ? `<\u00a0${10 ** -digits}%` : text;
}

const DAY = 864e5;

/** Milliseconds since 1970 as a date; with the time where spans are shorter than some days. @param {number} value @param {number} [span] */
export function date(value, span = Infinity) {
  const time = new Date(value);
  if (Number.isNaN(time.getTime())) return number(value / (365.2425 * DAY) + 1970, 6);
  const text = time.toISOString();
  if (span < 3 * DAY) return text.slice(0, 16).replace("T", " ");
  return text.slice(0, text.indexOf("T"));
}

/** A value of a column in its own units. @param {import("./data.js").Column} column @param {number | null | undefined} value @param {number} [digits] */
export function valueOf(column, value, digits = 4) {
  if (value === null || value === undefined) return NONE;
  return column.kind === "date" ? date(value) : number(value, digits);
}

/** What to call a cell of a column. @param {import("./data.js").Column} column @param {number} cell */
export function cellName(column, cell) {
  const cells = /** @type {import("./data.js").Cells} */ (column.cells);
  if (cells.labels) return short(cells.labels[cell]);
  const low = /** @type {number[]} */ (cells.low)[cell];
  const high = /** @type {number[]} */ (cells.high)[cell];
  return low === high ? valueOf(column, low, 6) : `${valueOf(column, low, 6)} to ${valueOf(column, high, 6)}`;
}

const ENDED = 30; // letters up to which a text loses its end, and beyond which its middle

/** A text that fits: what cannot be seen is made visible, the end or the middle of what is long is left out. @param {string} text @param {number} [most] @param {string} [none] instead of no text */
export function short(text, most = 60, none = "(empty)") {
  const seen = text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "\u{fffd}");
  const letters = seen.length > most ? [...seen] : null;
  if (!letters || letters.length <= most) return seen === "" ? none : seen;
  if (most <= ENDED) return `${letters.slice(0, most - 1).join("")}…`;
  const half = Math.floor((most - 1) / 2);
  return `${letters.slice(0, half).join("")}…${letters.slice(-half).join("")}`;
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'; // of drawings, as the style says
const HEAD = 0.6; // of the letters that are kept of a long name: its end tells names apart that begin alike

/** @type {CanvasRenderingContext2D | null | undefined} */
let ruler;

/** How wide a text is in a drawing, in pixels. @param {string} text */
export function textWidth(text) {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return 7 * text.length;
  ruler.font = FONT;
  return ruler.measureText(text).width;
}

/** @type {Map<string, string>} the names of a matrix are drawn anew with every move of the pointer */
const cut = new Map();

/** A text that is at most so wide in a drawing: what is left out is in its middle. @param {string} text @param {number} room pixels */
export function fitted(text, room) {
  const key = `${room} ${text}`;
  const result = cut.get(key) ?? cutTo(text, room);
  cut.set(key, result);
  return result;
}

/** @param {string} text @param {number} room */
function cutTo(text, room) {
  const seen = short(text);
  const width = textWidth(seen);
  const letters = [...seen];
  let result = seen;
  for (let kept = Math.ceil((letters.length * room) / width); width > room && kept >= 2 && textWidth(result) > room; kept--) {
    const head = Math.ceil(HEAD * kept);
    result = `${letters.slice(0, head).join("")}…${letters.slice(letters.length - kept + head).join("")}`;
  }
  return result;
}

/** A name between quotes that cannot turn the text around it, for labels that are read aloud. @param {string} text */
export const quoted = (text) => `“\u2068${short(text, 40)}\u2069”`;
