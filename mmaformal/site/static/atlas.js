// Search, sorting, CSV and the theme: pages are whole without them.
"use strict";

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

function search(query) {
  const wanted = words(query);
  let count = 0;
  for (const table of document.querySelectorAll("main table")) {
    for (const row of table.tBodies[0].rows) {
      const text = `${row.textContent} ${[...row.cells].map((x) => x.textContent).join(" ")} ${row.dataset.words ?? ""}`;
      row.hidden = !wanted.every((word) => text.toLowerCase().includes(word));
      if (!row.hidden) count += 1;
    }
    table.closest("section").hidden = ![...table.tBodies[0].rows].some((row) => !row.hidden);
  }
  document.getElementById("found").textContent = wanted.length ? `${count} found for “${query.trim()}”` : "";
}

function searchable() {
  const field = document.querySelector("header input");
  if (!document.getElementById("found")) return;
  const ask = () => search(field.value);
  field.value = new URLSearchParams(location.search).get("q") ?? "";
  field.addEventListener("input", () => {
    const query = field.value.trim();
    history.replaceState(null, "", query ? `?q=${encodeURIComponent(query)}` : location.pathname);
    ask();
  });
  field.form.addEventListener("submit", (event) => event.preventDefault());
  ask();
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = new Intl.Collator("en", { numeric: true }).compare;
      const text = (row) => row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows].sort((x, y) => compare(text(x), text(y)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}

function csv(table) {
  const cell = (x) => `"${x.textContent.replaceAll('"', '""')}"`;
  return [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(cell).join(",")).join("\r\n");
}

function saved(table) {
  const button = document.createElement("button");
  button.textContent = "CSV of the rows shown";
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
    link.download = `${table.dataset.name.replaceAll(" ", "-")}.csv`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.append(button);
  table.closest(".scroll").before(tools);
}

function themed() {
  const root = document.documentElement;
  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const button = document.createElement("button");
  const told = () => { button.textContent = dark() ? "light" : "dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    told();
  });
  told();
  document.querySelector("header nav").append(button);
}

const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
document.querySelectorAll("main table").forEach((table) => { sortable(table); saved(table); });
searchable();
themed();
