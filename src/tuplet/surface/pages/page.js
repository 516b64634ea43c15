// Click on a heading, or Enter on it, sorts a table by that column; again turns it round.
(function () {
  "use strict";
  const collator = new Intl.Collator(undefined, { numeric: true });

  function entry(row, column) {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
  }

  // Words come after numbers whatever the direction: a failure is never the best.
  function compare(a, b, sign) {
    const words = [typeof a === "string", typeof b === "string"];
    if (words[0] !== words[1]) return words[0] ? 1 : -1;
    if (words[0]) return sign * collator.compare(a, b);
    return a === b ? 0 : sign * (a < b ? -1 : 1);
  }

  function sort(table, heading) {
    const now = heading.getAttribute("aria-sort");
    const turned = now === "ascending" ? "descending" : "ascending";
    const direction = now === "none" ? heading.dataset.first : turned;
    for (const other of heading.parentNode.cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = Array.from(table.tBodies[0].rows, (row) => [entry(row, heading.cellIndex), row]);
    rows.sort((one, other) => compare(one[0], other[0], sign));
    table.tBodies[0].append(...rows.map((pair) => pair[1]));
  }

  for (const table of document.querySelectorAll("table")) {
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.firstChild.childNodes);
      heading.firstChild.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sort(table, heading));
    }
  }
})();
