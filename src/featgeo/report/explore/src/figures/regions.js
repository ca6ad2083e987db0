// Where two columns meet more often, or less, than by chance: a table whose cells are coloured where that is sure.
import { html } from "htm/preact";
import { ground } from "../colours.js";
import { count, number, short } from "../format.js";
import { breakable, sentence } from "../parts.js";
import { dark, isPrinting } from "../scheme.js";

const MOST = 14; // rows and columns of the table
const PRINTED = 8; // columns that a page of paper is wide

const NAMES = 11; // letters that the column of names is wide at least
const HEAD = 7; // and each of the others
const WORD = 16; // letters of the longest words that are not broken

/** How wide a column must be so that no usual word is broken. @param {string[]} texts @param {number} [least] letters */
export function wordWidth(texts, least = NAMES) {
  const longest = Math.max(...texts.flatMap((text) => short(text, 44).split(/[\s_./-]/)).map((word) => word.length));
  return `${0.63 * Math.min(Math.max(longest, least), WORD)}rem`;
}

/** How many times as many. @param {number} ratio */
const times = (ratio) => `× ${ratio >= 10 ? ratio.toFixed(0) : ratio >= 1 ? ratio.toFixed(1) : ratio ? ratio.toFixed(2) : "0"}`;

/** @param {{a: string, b: string, regions: import("../data.js").Regions, found: boolean}} props `found`: the pair is no chance */
export function RegionsTable({ a, b, regions, found }) {
  const { observed, residual } = regions;
  const sure = regions.sure.map((row) => row.map((one) => found && one));
  const total = Math.max(observed.flat().reduce((sum, n) => sum + n, 0), 1);
  const rows = observed.map((row) => row.reduce((sum, n) => sum + n, 0));
  const cols = regions.b.map((_, j) => observed.reduce((sum, row) => sum + row[j], 0));
  const shownRows = rows.map((n, i) => ({ n, i })).filter((one) => one.n).slice(0, MOST);
  const most = isPrinting.value ? PRINTED : MOST;
  const shownCols = cols.map((n, j) => ({ n, j })).filter((one) => one.n).slice(0, most);
  const left = rows.filter(Boolean).length - shownRows.length + cols.filter(Boolean).length - shownCols.length;
  const top = Math.max(...residual.flat().map(Math.abs), 1);
  return html`
    <div class="scroll tall" tabindex="0" role="group" aria-label="Rows observed and expected">
      <table class="regions">
        <caption class="unseen">Rows observed, and times as many as expected, in regions of both columns</caption>
        <thead>
          <tr>
            <td style=${{ minWidth: wordWidth([a, b, ...regions.a]) }}><span class="corner"><bdi>${breakable(short(a, 40))}</bdi> ↓ <bdi>${breakable(short(b, 40))}</bdi> →</span></td>
            ${shownCols.map(({ j }) => html`<th scope="col" style=${{ minWidth: wordWidth([regions.b[j]], HEAD) }}><bdi>${sentence(short(regions.b[j], 44))}</bdi></th>`)}
          </tr>
        </thead>
        <tbody>
          ${shownRows.map(
            ({ i }) => html`<tr>
              <th scope="row"><bdi>${sentence(short(regions.a[i], 44))}</bdi></th>
              ${shownCols.map(({ j }) => {
                const expected = (rows[i] * cols[j]) / total;
                const ratio = expected ? observed[i][j] / expected : 0;
                const title = `expected ${number(expected)}`;
                if (!sure[i][j]) return html`<td class="unsure" title=${title}>${`${count(observed[i][j])}\n·`}</td>`;
                const colour = ground(Math.sign(residual[i][j]) * Math.sqrt(Math.abs(residual[i][j]) / top), dark.value);
                return html`<td style=${`background-color:${colour}`} title=${title}>${`${count(observed[i][j])}\n${times(ratio)}`}</td>`;
              })}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="aside">
      Rows in each region${found ? ", and how many times as many as there would be if the two were independent. Blue: more, orange: fewer, each beyond what chance gives among all regions; a dot: may be chance" : "; how they differ from those of independent columns may be chance"}.${left > 0 ? ` ${left} smaller regions are left out here.` : ""}
    </p>
  `;
}
