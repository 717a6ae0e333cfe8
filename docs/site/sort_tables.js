// The tables of the leaderboard, sorted by the column whose heading is pressed; every other page is left alone.
(() => {
  if (!/\/arena(\/|\/index\.html|\.html)?$/.test(location.pathname)) return;

  const NUMBER = /^(\d+(?:\.\d+)?)(?: %| \/ .*)?$/;
  const value = (row, column) => row.cells[column]?.textContent.trim() ?? "";

  const compare = (column, numeric, sign) => (a, b) => {
    const [x, y] = [value(a, column), value(b, column)];
    if (!numeric) return sign * x.localeCompare(y);
    const [m, n] = [NUMBER.exec(x), NUMBER.exec(y)];
    if (!m || !n) return Number(!m) - Number(!n); // what was not measured stands last, both ways
    return sign * (Number(m[1]) - Number(n[1]));
  };

  const sort = (table, heading) => {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    const column = heading.cellIndex;
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const cells = rows.map((row) => value(row, column)).filter((text) => text !== "-" && !text.startsWith("- /"));
    const numeric = cells.length > 0 && cells.every((text) => NUMBER.test(text));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    body.append(...rows.sort(compare(column, numeric, ascending ? 1 : -1)));
  };

  for (const table of document.querySelectorAll("article table")) {
    if (!table.tHead || table.tBodies.length !== 1) continue;
    for (const heading of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading));
      heading.append(button);
    }
  }
})();
