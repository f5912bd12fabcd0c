// What the playground draws of an answer.

export function element(name, properties = {}, ...inside) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...inside);
  return made;
}

// A box for each bit, by fields; buttons where they can be flipped.
export function bitBoxes(text, name, flip) {
  const fields = text.split(" ");
  const kinds = fields.length === 3 ? ["sign", "exponent", "fraction"] : ["exponent", "fraction"];
  const box = element("div", { className: "bits", role: "group", ariaLabel: `bits of ${name}` });
  let place = fields.join("").length;
  if (place > 24) box.classList.add("wide");
  fields.forEach((field, number) => {
    [...field].forEach((digit, k) => {
      const bit = (place -= 1);
      const one = element(flip ? "button" : "span", { textContent: digit });
      one.className = `${kinds[number]}${k === 0 && number ? " first" : ""}`;
      if (flip) {
        Object.assign(one, { id: `${name}-bit-${bit}`, ariaLabel: `${digit}, ${kinds[number]} bit ${bit} of ${name}` });
        one.ariaPressed = digit === "1";
        one.tabIndex = -1;
        one.addEventListener("click", () => flip(bit));
      }
      box.append(one);
    });
  });
  if (flip) {
    box.firstChild.tabIndex = 0; // one stop for all of them; arrows lead from bit to bit
    box.addEventListener("keydown", ({ key, target }) => {
      const next = {
        ArrowRight: target.nextSibling, ArrowLeft: target.previousSibling, Home: box.firstChild, End: box.lastChild,
      }[key];
      if (!next) return;
      for (const each of box.children) each.tabIndex = each === next ? 0 : -1;
      next.focus();
    });
  }
  return box;
}

// The same boxes with other digits: what has the focus keeps it.
export function updateBits(box, text) {
  [...text.replaceAll(" ", "")].forEach((digit, k) => {
    const one = box.children[k];
    if (one.textContent === digit) return;
    one.textContent = digit;
    one.ariaLabel = one.ariaLabel.replace(/^./, digit);
    one.ariaPressed = digit === "1";
  });
}

export function card(unit) {
  const box = element("section", { className: "card" }, element("h3", { textContent: unit.label }));
  box.append(element("p", { className: "d code", textContent: `${unit.code}  ${unit.text}` }));
  box.append(bitBoxes(unit.bits, `d of ${unit.label}`));
  if (unit.exact) box.append(element("p", { className: "value code", textContent: `exact: ${unit.exact}` }));
  box.append(element("p", { className: "value", textContent: unit.model }));
  return box;
}

// Rows of all steps, units side by side; the first row that differs is marked.
export function stageTable(tables, labels) {
  const table = element("table", { className: "stages" });
  const head = ["", "stage", "of", ...labels].map((textContent) => element("th", { textContent, scope: "col" }));
  table.append(element("thead", {}, element("tr", {}, ...head)));
  const body = table.appendChild(element("tbody"));
  for (const row of tables.flat()) {
    const line = body.appendChild(element("tr", {}));
    row.forEach((textContent, k) => line.append(element("td", { textContent, className: k > 2 ? "code" : "" })));
    if (row[0] === "≠") line.className = body.querySelector(".first") ? "differs" : "differs first";
  }
  const box = element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: `stages of ${labels.join(", ")}` });
  box.append(tables.flat().length ? table : "all products are zero: c passes unchanged");
  return box;
}

// The terms below each other, what is cut off greyed.
export function alignment(unit) {
  if (!unit.alignment) return [];
  const drawn = element("pre", { className: "alignment", tabIndex: 0 });
  for (const line of unit.alignment.split("\n")) {
    const [kept, cut] = line.startsWith("  ") ? line.split("|") : [line];
    drawn.append(kept);
    if (cut !== undefined) drawn.append("|", element("span", { className: "cut", textContent: cut }));
    drawn.append("\n");
  }
  return [element("h3", { textContent: `${unit.label}: terms aligned` }), drawn];
}
