// The playground: what is typed goes to Python in this page, what it answers is drawn. No arithmetic is done here.
import { stageTable, alignment, card, bitBoxes, updateBits, element } from "./drawing.js";

const SIDES = ["a", "b", "c", "scale_a", "scale_b"];
const START = "units=ampere HMMA.16816.F32,hopper HMMA.16816.F32&a=1&b=1&c=-0x1p-25";
const status = document.getElementById("status");
const state = { units: [], words: {}, rows: 2 };
let catalogue = [];
let python = null;
let last = null;

async function load() {
  const started = performance.now();
  catalogue = await (await fetch("data/catalogue.json")).json();
  restore();
  const { loadPyodide } = await import("./pyodide/pyodide.mjs");
  const [runtime, archive] = await Promise.all([
    loadPyodide({ indexURL: new URL("pyodide/", document.baseURI).href }),
    fetch("playground.zip", { cache: "no-cache" }).then((x) => x.arrayBuffer()),
  ]);
  runtime.unpackArchive(archive, "zip");
  runtime.runPython(`
import runpy
runpy.run_path("mmaformal/site/absent.py")["install"]()
from mmaformal.site.playground import answer
`);
  python = window.playgroundAnswer = runtime.globals.get("answer");
  document.body.dataset.loaded = (performance.now() - started).toFixed(0);
  evaluate();
}

// ---- state and its address ----

function restore() {
  const given = new URLSearchParams(location.hash.slice(1) || START);
  const known = new Set(catalogue.map((each) => each.label));
  state.units = (given.get("units") ?? "").split(",").filter((label) => known.has(label));
  if (!state.units.length) state.units = [catalogue[0].label];
  state.words = {};
  for (const side of SIDES) state.words[side] = given.get(side)?.split(",") ?? [];
  state.rows = Math.max(2, state.words.a.length, state.words.b.length);
}

function remember() {
  const parts = [`units=${state.units.map(encodeURIComponent).join(",")}`];
  for (const side of SIDES) {
    const words = (state.words[side] ?? []).map((word) => word ?? "");
    while (words.length && !words.at(-1)) words.pop();
    if (words.length) parts.push(`${side}=${words.map(encodeURIComponent).join(",")}`);
  }
  history.replaceState(null, "", `#${parts.join("&")}`);
}

// Units of the reader's own are not among the files that a browser has: the server on this machine evaluates them.
async function answerTo(asked) {
  if (!state.units.some((label) => entry(label)?.own)) return JSON.parse(python(asked));
  const headers = { "Content-Type": "application/json" };
  return (await fetch("api/evaluate", { method: "POST", headers, body: asked })).json();
}

async function evaluate() {
  if (!python) return;
  const started = performance.now();
  const asked = JSON.stringify({ units: state.units, ...state.words });
  const answered = await answerTo(asked);
  if (asked !== JSON.stringify({ units: state.units, ...state.words })) return; // something else was typed meanwhile
  const taken = performance.now() - started;
  document.body.dataset.evaluated = taken.toFixed(1);
  remember();
  drawUnits();
  const results = document.getElementById("results");
  results.classList.toggle("stale", Boolean(answered.error));
  for (const input of document.querySelectorAll("#inputs input")) input.ariaInvalid = null;
  if (answered.error) {
    status.className = "wrong";
    status.textContent = answered.error;
    const [, side, place] = /^(\w+)\[(\d+)\]: /.exec(answered.error) ?? [];
    if (answered.operands) {
      last = { ...last, ...answered };
      drawInputs();
    }
    const input = document.getElementById(`${side}-${place}`);
    if (input) input.ariaInvalid = "true";
    return;
  }
  status.className = "";
  status.textContent = `evaluated in ${taken.toFixed(0)} ms; Python was ready after ${document.body.dataset.loaded} ms`;
  last = answered;
  drawInputs();
  drawResults();
}

// ---- the units ----

const entry = (label) => catalogue.find((each) => each.label === label);

function choose(label, options, change) {
  const select = element("select", { ariaLabel: label || "unit to compare" });
  if (!label) select.append(new Option("compare with another unit …", ""));
  const groups = {};
  for (const each of options) {
    const [architecture, name] = each.label.split(" ");
    groups[architecture] ??= select.appendChild(element("optgroup", { label: architecture }));
    groups[architecture].append(new Option(`${name}: ${each.types}, K=${each.k} (${architecture})`, each.label));
  }
  select.value = label;
  select.addEventListener("change", () => change(select.value));
  return select;
}

function drawUnits() {
  const box = document.getElementById("units");
  const first = entry(state.units[0]);
  const alike = catalogue.filter((each) => each.takes === first.takes);
  const rows = state.units.map((label, place) => {
    const row = element("div", { className: "unit" });
    row.append(choose(label, place ? alike : catalogue, (chosen) => {
      if (!place && entry(chosen).takes !== first.takes) retype(chosen);
      else state.units[place] = chosen;
      evaluate();
    }));
    if (state.units.length > 1) {
      const button = element("button", { textContent: "remove", ariaLabel: `remove ${label}` });
      button.addEventListener("click", () => { state.units.splice(place, 1); evaluate(); });
      row.append(button);
    }
    return row;
  });
  const others = alike.filter((each) => !state.units.includes(each.label));
  const more = element("div", { className: "unit" });
  more.append(choose("", others, (chosen) => { if (chosen) state.units.push(chosen); evaluate(); }));
  box.replaceChildren(...rows, ...(others.length ? [more] : []));
}

// Another type: numbers stay what they are as far as it has them, bits do not.
function retype(label) {
  state.units = [label];
  for (const side of SIDES) {
    const operands = last?.operands[side] ?? [];
    state.words[side] = (state.words[side] ?? []).map((word, k) => (word ? operands[k]?.text.split(" ")[0] : ""));
  }
  for (const side of ["a", "b"]) state.words[side] = state.words[side].slice(0, entry(label).k);
  state.words.scale_a = state.words.scale_b = [];
}

// ---- the operands ----

function type(side, place, text) {
  const words = (state.words[side] ??= []);
  text.split(/[\s,;]+/).filter((word, k) => word || !k).forEach((word, k) => { words[place + k] = word; });
  for (let k = 0; k < words.length; k += 1) words[k] ??= "";
  if (side === "a" || side === "b") state.rows = Math.max(state.rows, words.length);
  evaluate();
}

function flip(side, place, bit) {
  const code = BigInt(last.operands[side][place].code) ^ (1n << BigInt(bit));
  type(side, place, `0x${code.toString(16)}`);
}

function operand(side, place, told) {
  const name = side === "c" ? "c" : `${side}[${place}]`;
  const input = element("input", { id: `${side}-${place}`, spellcheck: false, autocomplete: "off" });
  input.addEventListener("input", () => type(side, place, input.value));
  input.addEventListener("change", drawInputs); // several that were typed into one stand in their places then
  const label = element("label", {}, element("span", { className: "code", textContent: name }), input);
  const [value, note] = ["value code", "note"].map((className) => element("div", { className }));
  const bits = bitBoxes(told.bits, name, (bit) => flip(side, place, bit));
  const box = element("div", { className: "operand" }, label, value, bits, note);
  return { side, place, box, input, value, bits, note };
}

function update({ side, place, input, value, bits, note }) {
  const told = last.operands[side][place];
  if (document.activeElement !== input || !document.hasFocus()) input.value = state.words[side]?.[place] ?? "";
  input.placeholder = told.text.split(" ")[0];
  value.textContent = `${told.code}  ${told.text}`;
  updateBits(bits, told.bits);
  note.textContent = told.note;
}

let drawn = { key: "", operands: [] };

// The fields are made once for all operands of some types, and filled anew: what has the focus keeps it.
function drawInputs() {
  const count = Math.min(state.rows, last.k);
  const places = [];
  for (let k = 0; k < count; k += 1) places.push(["a", k], ["b", k]);
  places.push(["c", 0]);
  for (const side of ["scale_a", "scale_b"]) (last.operands[side] ?? []).forEach((_, k) => places.push([side, k]));
  const key = JSON.stringify([places, last.formats, last.k]);
  if (key !== drawn.key) {
    drawn = { key, operands: places.map(([side, k]) => operand(side, k, last.operands[side][k])) };
    layOut(count, drawn.operands.map(({ box }) => box));
  }
  drawn.operands.forEach(update);
}

function layOut(count, boxes) {
  const { id, selectionStart, selectionEnd, value } = document.activeElement ?? {};
  const tools = element("p");
  const show = (text, rows) => {
    const button = element("button", { textContent: text });
    button.addEventListener("click", () => { state.rows = rows; drawInputs(); });
    tools.append(button, " ");
  };
  if (count < last.k) {
    show("one product more", count + 1);
    show(`all ${last.k} products`, last.k);
  }
  const types = Object.entries(last.formats).map(([side, format]) => `${side} ${format}`).join(", ");
  const heading = element("h2", { textContent: `Operands: ${types}; ${count} of ${last.k} products shown` });
  document.getElementById("inputs").replaceChildren(
    heading, element("div", { className: "operands" }, ...boxes), tools);
  const focused = id && document.getElementById(id);
  if (!focused) return;
  if (focused.tagName === "INPUT") focused.value = value;
  focused.focus();
  if (focused.tagName === "INPUT") focused.setSelectionRange(selectionStart, selectionEnd);
}

function parting() {
  if (!last.parts) return "they do not part on this input";
  const same = last.units.every((unit) => unit.code === last.units[0].code);
  return `where they part: ${last.parts}${same ? "; d is the same all the same" : ""}`;
}

function drawResults() {
  const results = document.getElementById("results");
  const parts = [element("h2", { textContent: "d" }), element("div", { className: "cards" }, ...last.units.map(card))];
  parts.push(element("h2", { textContent: "Stage by stage" }));
  if (last.units.length > 1) {
    parts.push(element("p", {
      className: "apart",
      id: "parts",
      textContent: parting(),
    }));
  }
  const labels = last.units.map((unit) => unit.label);
  const together = last.units.every((unit) => !unit.tables.length);
  if (together) parts.push(stageTable(last.tables, labels));
  else for (const unit of last.units) parts.push(stageTable(unit.tables, [unit.label]));
  for (const unit of last.units) parts.push(...alignment(unit));
  results.replaceChildren(...parts);
  results.hidden = false;
}

addEventListener("hashchange", () => { restore(); evaluate(); });
load().catch((error) => {
  status.className = "wrong";
  status.textContent = `Python could not be started here: ${error.message}. A server is needed: mmaformal serve.`;
});
