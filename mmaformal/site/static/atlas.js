// Search, sorting, CSV and the theme: pages are whole without them.
"use strict";

// Words of a question that say nothing of what is looked for.
const FILLING = new Set(["vs", "and", "or", "the", "of", "on", "with", "in", "accumulator", "accumulation", "bits", "bit"]);

function words(text) {
  const all = text.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const telling = all.filter((word) => !FILLING.has(word));
  return telling.length ? telling : all;
}

// What a word may stand for: itself, or the architectures of devices whose names begin with it.
let devices = null;

async function meanings(wanted) {
  devices ??= fetch(`${document.body.dataset.root}data/devices.json`).then((answer) => answer.json());
  const named = Object.entries(await devices);
  return wanted.map((word) => {
    const meant = new Set(word.length > 1 ? named.flatMap(([name, all]) => (name.startsWith(word) ? all : [])) : []);
    const either = [...meant].map((architecture) => new RegExp(`\\b${architecture}\\b`));
    return (text) => text.includes(word) || either.some((one) => one.test(text));
  });
}

const rowText = (row) =>
  `${[...row.cells].map((x) => x.textContent).join(" ")} ${row.dataset.words ?? ""}`.toLowerCase();

async function search(query) {
  const wanted = await meanings(words(query));
  if (query !== document.querySelector("header input").value) return; // something else was typed meanwhile
  let count = 0;
  for (const table of document.querySelectorAll("main table[data-name]")) {
    for (const row of table.tBodies[0].rows) {
      row.hidden = !wanted.every((fits) => fits(rowText(row)));
      if (!row.hidden) count += 1;
    }
    table.closest("section").hidden = ![...table.tBodies[0].rows].some((row) => !row.hidden);
  }
  document.getElementById("tasks").hidden = wanted.length > 0;
  more(wanted, count, query.trim());
}

// Pairs, maps, sources and proofs, which the first page has no tables of.
let elsewhere = null;
const MOST = 12;

async function more(wanted, rows, query) {
  const [hits, told] = [document.getElementById("hits"), document.getElementById("found")];
  hits.replaceChildren();
  told.textContent = "";
  if (!wanted.length) return;
  let found = [];
  if (wanted.length > 1 || query.length > 2) {
    elsewhere ??= fetch("data/search.json").then((answer) => answer.json());
    const fits = (text) => wanted.every((each) => each(text.toLowerCase()));
    found = (await elsewhere).filter(([name, kind, , words]) => fits(`${name} ${kind} ${words ?? ""}`));
    const own = found.filter(([name, kind]) => fits(`${name} ${kind}`)); // before those that mean the same
    found = [...own, ...found.filter((each) => !own.includes(each))];
  }
  if (query !== document.querySelector("header input").value.trim()) return; // something else was typed meanwhile
  const some = rows + found.length ? "" : "; try a device, a type, an instruction: a100, fp8, HMMA";
  told.textContent = `“${query}”: ${rows} in the tables${rows ? " below" : ""}, ${found.length} pairs, maps, sources, `
    + `proofs and commands${rows && found.length ? " after them" : ""}${some}`;
  const item = ([name, kind, to]) => {
    const line = document.createElement("li");
    line.append(Object.assign(document.createElement("a"), { href: to, textContent: name }), ` (${kind})`);
    return line;
  };
  hits.replaceChildren(...found.slice(0, MOST).map(item));
  if (found.length > MOST) {
    const all = Object.assign(document.createElement("button"), { textContent: `${found.length - MOST} more` });
    all.addEventListener("click", () => hits.replaceChildren(...found.map(item)));
    hits.append(all);
  }
}

// A field above a long table that narrows it.
function filterable(table) {
  if (document.getElementById("found") || table.tBodies[0].rows.length < 12) return;
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "only rows with …";
  field.ariaLabel = `only rows of ${table.dataset.name} with`;
  const key = table.dataset.name.replaceAll(" ", "-");
  const parameters = () => new URLSearchParams(location.hash.slice(1));
  const narrow = async () => {
    const wanted = field.value.trim() ? await meanings(words(field.value)) : [];
    for (const row of table.tBodies[0].rows) row.hidden = !wanted.every((fits) => fits(rowText(row)));
  };
  field.value = parameters().get(key) ?? "";
  field.addEventListener("input", () => {
    const all = parameters();
    if (field.value.trim()) all.set(key, field.value.trim());
    else all.delete(key);
    history.replaceState(null, "", all.size ? `#${all}` : location.pathname + location.search);
    narrow();
  });
  table.closest(".scroll").previousElementSibling.prepend(field, " ");
  narrow();
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
    if (!head.textContent) return;
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
  const told = () => { button.textContent = dark() ? "☀ light" : "☾ dark"; };
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
document.querySelectorAll("main table[data-name]").forEach((table) => {
  sortable(table);
  saved(table);
  filterable(table);
});
searchable();
themed();
