// A proof's obligations, put to z3 in this browser one by one.

const box = document.getElementById("checker");
const start = document.getElementById("check");
const stop = document.getElementById("stop");
const told = document.getElementById("checked");
const milliseconds = Number(box.dataset.seconds) * 1000;
let worker = null;

const hex = (bytes) => [...new Uint8Array(bytes)].map((x) => x.toString(16).padStart(2, "0")).join("");

// The script of a row, which has to have the digest that the row names.
async function scriptOf(link) {
  const answer = await fetch(link.href);
  if (!answer.ok) throw new Error(`${link.href}: ${answer.status}`);
  const packed = answer.body.pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(packed).arrayBuffer();
  if (hex(await crypto.subtle.digest("SHA-256", bytes)) !== link.dataset.sha256) throw new Error("another SHA-256");
  return new TextDecoder().decode(bytes);
}

// What the worker says next, or nothing where a time is over.
function next(limit) {
  return new Promise((settled) => {
    const late = limit && setTimeout(() => settled({ late: true }), limit);
    const said = (answer) => { clearTimeout(late); settled(answer); };
    worker.onmessage = ({ data }) => said(data);
    worker.onerror = (event) => said({ error: event.message || "z3 could not be started" });
    stopped = () => said({ stopped: true });
  });
}

let stopped = () => {};

async function newWorker() {
  worker?.terminate();
  worker = new Worker(new URL("z3-worker.js", import.meta.url));
  return next();
}

async function ask(script) {
  if (!worker) {
    const begun = await newWorker();
    if (!begun.ready) return begun;
  }
  const answer = next(milliseconds);
  worker.postMessage(script);
  return answer;
}

function end() {
  worker?.terminate();
  worker = null;
}

async function check() {
  const rows = [...document.querySelectorAll("table[data-name=obligations] tbody tr")];
  const asked = rows.filter((row) => !row.cells[5].textContent || row.dataset.asked);
  const counts = { unsat: 0, open: 0, wrong: 0 };
  const begun = performance.now();
  stop.hidden = false;
  stop.focus();
  start.hidden = true;
  for (const row of asked) {
    const cell = row.cells[5];
    row.dataset.asked = "yes";
    cell.textContent = "…";
    let said;
    try {
      said = await ask(await scriptOf(row.querySelector("a")));
    } catch (error) {
      said = { error: error.message };
    }
    if (!said.answer) end();
    if (said.stopped) { cell.textContent = ""; break; }
    if (said.error) { cell.textContent = said.error; counts.wrong += 1; }
    else if (said.answer === "unsat") { cell.textContent = `✓ unsat, ${(said.taken / 1000).toFixed(2)} s`; counts.unsat += 1; }
    else if (said.answer?.startsWith("sat")) { cell.textContent = "✗ sat"; counts.wrong += 1; }
    else { cell.textContent = `not settled in ${milliseconds / 1000} s`; counts.open += 1; }
    report(counts, asked.length, rows.length, begun, false);
  }
  report(counts, asked.length, rows.length, begun, true);
  document.body.dataset.checked = counts.unsat;
  start.hidden = false;
  if (document.activeElement === stop) start.focus();
  stop.hidden = true;
  end();
}

function report(counts, asked, all, begun, done) {
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const parts = [`${counts.unsat} of ${all} refuted by z3 here in ${seconds} s`];
  if (counts.open) parts.push(`${counts.open} not settled in ${milliseconds / 1000} s`);
  if (counts.wrong) parts.push(`${counts.wrong} wrong`);
  const left = asked - counts.unsat - counts.open - counts.wrong;
  if (left > 0) parts.push(done ? `${left} not asked` : `${left} to ask`);
  told.textContent = parts.join("; ");
  told.className = counts.wrong ? "wrong" : "";
}

if (window.crossOriginIsolated) {
  start.hidden = false;
  start.addEventListener("click", check);
  stop.addEventListener("click", () => stopped());
} else {
  told.className = "wrong";
  told.textContent = "z3 needs a page that is isolated from other sites (the headers Cross-Origin-Opener-Policy: "
    + "same-origin and Cross-Origin-Embedder-Policy: require-corp, over https or from this machine). "
    + "mmaformal serve sends them.";
}
