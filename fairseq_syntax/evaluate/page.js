"use strict";
// Tables sort by the column whose name is pressed; without scripts the page is whole, only unsorted.
for (const table of document.querySelectorAll("table:not(.plain)")) {
  const names = [...table.tHead.rows[0].cells];
  names.forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      names.forEach((other) => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].textContent;
      const compared = (a, b) => {
        const [x, y] = [parseFloat(value(a)), parseFloat(value(b))];
        if (Number.isNaN(x) || Number.isNaN(y)) {
          if (Number.isNaN(x) !== Number.isNaN(y)) return (Number.isNaN(x) ? 1 : -1) * (down ? -1 : 1);
          return value(a).localeCompare(value(b));
        }
        return x - y;
      };
      const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? compared(b, a) : compared(a, b)));
      table.tBodies[0].append(...rows);
    });
  });
}
const search = document.getElementById("search");
if (search) {
  const form = search.form;
  const sentences = [...document.querySelectorAll(".sentence")];
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = new Set([...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
    for (const row of document.querySelectorAll("[data-system]")) row.hidden = !shown.has(row.dataset.system);
    let found = 0;
    for (const sentence of sentences) {
      const said = [...sentence.querySelectorAll("summary, tr:not([hidden])")].map((part) => part.textContent);
      const all = said.join(" ").toLowerCase();
      sentence.hidden = !words.every((word) => all.includes(word));
      found += !sentence.hidden;
    }
    document.getElementById("found").textContent = `${found} of ${sentences.length} sentences`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
// On paper, nothing can be unfolded.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((part) => { part.open = true; });
});
addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));
