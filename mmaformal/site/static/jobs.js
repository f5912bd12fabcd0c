// Questions to the server on this machine: asked, watched, cancelled.
import { element } from "./drawing.js";

const form = document.getElementById("ask");
const list = document.getElementById("jobs");
const status = document.getElementById("status");
const shown = new Map();
let due = null;

async function post(path, question) {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function told(error) {
  status.className = "wrong";
  status.textContent = error.message;
}

function card(job) {
  const box = element("article", { className: "card" }, element("h3", { textContent: job.title }));
  const state = job.state === "done" ? { 2: "refused", 3: "done, not settled" }[job.status] ?? "done" : job.state;
  const progress = job.state === "running" ? job.progress : "";
  box.append(element("p", { className: "value", textContent: `${state}, ${job.seconds} s. ${progress}` }));
  box.append(element("pre", { textContent: `$ ${job.command}`, tabIndex: 0 }));
  if (job.output) box.append(element("pre", { textContent: job.output, tabIndex: 0, className: "output" }));
  if (job.state === "running" || job.state === "waiting") {
    const button = element("button", { textContent: "Cancel", ariaLabel: `Cancel ${job.title}` });
    button.addEventListener("click", () => post("api/cancel", { number: job.number }).then(refresh, told));
    box.append(button);
  }
  box.dataset.state = job.state;
  return box;
}

async function refresh() {
  clearTimeout(due);
  const { jobs, recordings, designs } = await (await fetch("api/jobs")).json();
  offer("recording", "check", recordings);
  offer("design", "signoff", designs);
  const text = JSON.stringify(jobs);
  if (shown.get("text") !== text) {
    shown.set("text", text);
    list.replaceChildren(...(jobs.length ? jobs.map(card) : ["None was asked yet."]));
  }
  if (jobs.some((job) => job.state === "running" || job.state === "waiting")) due = setTimeout(refresh, 1000);
}

// What the server was started with; a kind of question that needs some is offered where there are some.
function offer(field, kind, names) {
  const select = form.elements[field];
  if (select.options.length !== names.length) select.replaceChildren(...names.map((name) => new Option(name)));
  form.querySelector(`option[value=${kind}]`).disabled = !names.length;
}

function choose() {
  const kind = form.elements.kind.value;
  for (const part of form.querySelectorAll("[data-of]")) part.hidden = !part.dataset.of.split(" ").includes(kind);
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { kind, x, y, property, recording, design, timeout } = form.elements;
  const question = { kind: kind.value, timeout: Number(timeout.value) };
  if (kind.value === "diff") Object.assign(question, { x: x.value, y: y.value });
  if (kind.value === "prove") Object.assign(question, { x: x.value, property: property.value });
  if (kind.value === "signoff") Object.assign(question, { x: x.value, design: design.value });
  if (kind.value === "check") question.recording = recording.value;
  status.className = "";
  status.textContent = "";
  post("api/jobs", question).then(refresh, told);
});
form.elements.kind.addEventListener("change", choose);

const given = new URLSearchParams(location.hash.slice(1));
for (const [name, value] of given) if (form.elements[name]) form.elements[name].value = value;
choose();
fetch("data/catalogue.json").then((answer) => answer.json()).then((catalogue) => {
  document.getElementById("labels").replaceChildren(...catalogue.map(({ label }) => new Option(label, label)));
});
refresh().then(
  () => { form.hidden = false; },
  () => { status.className = "wrong"; status.textContent = "Questions are answered by mmaformal serve, on your machine."; },
);
