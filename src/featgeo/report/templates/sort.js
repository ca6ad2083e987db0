"use strict";
// Headings of sortable tables become buttons. Empty cells, and what is not a number, stay last either way.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  const names = new Intl.Collator("en", { numeric: true });

  const key = (row, column, numeric) => {
    const cell = row.cells[column];
    const value = cell.dataset.value ?? cell.textContent.trim();
    if (value === "") return null;
    if (!numeric) return value;
    const number = Number(value.replace("inf", "Infinity"));
    return Number.isNaN(number) ? null : number;
  };

  const sort = (heading, column) => {
    const falling = heading.getAttribute("aria-sort") === "ascending";
    const numeric = heading.matches(".number, [data-numeric]");
    const rows = [...table.tBodies[0].rows].map((row) => [key(row, column, numeric), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const rising = numeric ? Math.sign(a - b) || 0 : names.compare(a, b);
      return falling ? -rising : rising;
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  };

  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(heading, column));
    heading.append(button);
  });
}
