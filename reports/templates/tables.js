// Tables that can be sorted: a button in every column's head. Missing values stay last, whichever way.

/** The value a cell is sorted by: a number where its text starts with one, else the text; null for a missing value. */
function sortValue(text) {
  const shown = text.trim();
  if (shown === "" || shown === "—") return null;
  const number = Number.parseFloat(shown.replace(/,/g, "").replace(/^−/, "-").replace(/^</, ""));
  if (Number.isNaN(number)) return shown;
  return shown.startsWith("<") ? number - 1e-9 : number;
}

function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** Sorts the body of `table` by column `at`; equal rows keep their order. */
function sortTable(table, at, descending) {
  const rows = [...table.tBodies[0].rows].map((row) => {
    const { firstChild } = row.cells[at];  // the value; an interval after it is not sorted by
    return { row, value: sortValue(firstChild?.textContent ?? "") };
  });
  rows.sort((a, b) => {
    if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
    return descending ? compareValues(b.value, a.value) : compareValues(a.value, b.value);
  });
  table.tBodies[0].append(...rows.map(({ row }) => row));
  table.classList.add("sorted");
  table.querySelectorAll("thead th").forEach((head, i) => {
    if (i === at) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  });
}

/** Puts the buttons in; a column of numbers sorts largest first, text from A. */
function makeSortable(table) {
  table.querySelectorAll("thead th").forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      sortTable(table, at, before === null ? head.classList.contains("num") : before === "ascending");
    });
  });
}

document.querySelectorAll("main table").forEach(makeSortable);
