// Sorts a table by the column whose heading is clicked; numbers first from high to low, names from a to z.
// An open page loads itself anew after the seconds of `report --every`.
"use strict";
const seconds = Number(document.querySelector("main").dataset.every);
if (seconds) setTimeout(() => location.reload(), 1000 * seconds);
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const valueOf = (row, place) => {
    const cell = row.cells[place];
    return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent.trim().toLowerCase();
  };
  heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => {
    const rows = [...body.rows];
    const isNumber = rows.length > 0 && "sort" in rows[0].cells[place].dataset;
    const first = isNumber ? "descending" : "ascending";
    const order = head.ariaSort === "none" ? first : head.ariaSort === "ascending" ? "descending" : "ascending";
    const sign = order === "ascending" ? 1 : -1;
    heads.forEach((other) => { other.ariaSort = other === head ? order : "none"; });
    const keyed = rows.map((row) => [valueOf(row, place), row]);
    keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
    body.append(...keyed.map(([, row]) => row));
  }));
}
