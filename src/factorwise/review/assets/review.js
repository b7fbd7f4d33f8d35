"use strict";
// Everything that records say goes into the page as text, never as markup.
const main = document.getElementById("main");
const message = document.getElementById("message");
const who = document.getElementById("who");
let view = "questions";
let question = null;
let waiting = Promise.resolve();
let answering = false;

who.value = localStorage.getItem("who") || "me";
who.addEventListener("change", () => {
  localStorage.setItem("who", who.value);
  show(view);
});

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  for (const child of children) node.append(child);
  return node;
}

function say(text, error = false) {
  message.textContent = text;
  message.className = error ? "error" : "";
}

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer: was it stopped? Nothing more is saved.");
  }
  const found = await response.json().catch(() => ({ error: "The answer of the server cannot be read." }));
  if (!response.ok) throw new Error(found.error || "The server refused.");
  return found;
}

// One thing after the other, in the order in which they were asked for.
function doing(work) {
  waiting = waiting.then(work).catch((error) => say(error.message, true));
  return waiting;
}

const text = (value) => (value === null || value === undefined ? "" : String(value));

function compare(one, two) {
  const cells = [make("td"), make("td")];
  const words = [one, two].map((value) => text(value).split(/(\s+)/));
  const differs = text(one) !== text(two);
  cells.forEach((cell, side) => {
    const others = new Set(words[1 - side].map((word) => word.toLowerCase()));
    for (const word of words[side]) {
      if (differs && word.trim() && !others.has(word.toLowerCase())) cell.append(make("mark", {}, word));
      else cell.append(word);
    }
    if (differs && (!text(one) || !text(two))) cell.className = "differs";
  });
  return cells;
}

function pairTable(found) {
  const table = make("table", { class: "pair" });
  table.append(make("tr", {}, make("th", {}, "id"), make("th", {}, found.ids[0]), make("th", {}, found.ids[1])));
  for (const name of Object.keys(found.records[0])) {
    const cells = compare(found.records[0][name], found.records[1][name]);
    table.append(make("tr", {}, make("th", {}, name), ...cells));
  }
  return table;
}

function recordTable(records, choose) {
  const table = make("table");
  if (!records.length) return table;
  const names = Object.keys(records[0]);
  const head = make("tr", {}, ...(choose ? [make("th", {}, "")] : []), ...names.map((name) => make("th", {}, name)));
  table.append(head);
  for (const record of records) {
    const cells = names.map((name) => make("td", {}, text(record[name])));
    if (choose) cells.unshift(make("td", {}, make("input", { type: "checkbox", value: record.id, "aria-label": `choose ${record.id}` })));
    table.append(make("tr", {}, ...cells));
  }
  return make("div", { class: "scroll" }, table);
}

function bar(value, largest) {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("class", "bar");
  drawing.setAttribute("viewBox", "0 0 100 10");
  drawing.setAttribute("preserveAspectRatio", "none");
  const width = 50 * Math.abs(value) / largest;
  const box = document.createElementNS(space, "rect");
  for (const [key, setting] of Object.entries({ x: value < 0 ? 50 - width : 50, y: 1, width, height: 8, class: value < 0 ? "minus" : "plus" })) box.setAttribute(key, setting);
  const zero = document.createElementNS(space, "line");
  for (const [key, setting] of Object.entries({ x1: 50, x2: 50, y1: 0, y2: 10, class: "zero" })) zero.setAttribute(key, setting);
  drawing.append(box, zero);
  return drawing;
}

function waterfall(evidence) {
  const largest = Math.max(...evidence.map(([, value]) => Math.abs(value)), 1e-9);
  const steps = evidence.map(([name, value]) => make("div", { class: "step" },
    make("span", {}, name), bar(value, largest), make("span", {}, (value > 0 ? "+" : "") + value.toFixed(2))));
  const total = evidence.reduce((sum, [, value]) => sum + value, 0);
  steps.push(make("div", { class: "step" }, make("strong", {}, "sum"), bar(total, Math.max(largest, Math.abs(total))), make("strong", {}, (total > 0 ? "+" : "") + total.toFixed(2))));
  return make("div", { class: "waterfall" }, ...steps);
}

function button(label, key, style, action) {
  return make("button", { class: style, onclick: action }, `${label} `, make("kbd", {}, key));
}

function drawQuestion(found) {
  question = found.question;
  main.replaceChildren();
  if (!question) {
    main.append(make("h1", {}, "No more questions"), make("p", {}, "Nothing is left that would change much."));
    return;
  }
  if (question.kind === "whole") {
    drawWhole(found.progress);
    return;
  }
  const groups = question.sizes[0] > 1 || question.sizes[1] > 1;
  main.append(
    make("h1", {}, groups ? "Are these two groups one entity?" : "Are these two records one entity?"),
    make("p", { class: "hint" }, `They are ${question.together ? "one" : "two"} now; probability of one ${question.probability.toFixed(2)}. ` +
      `Asked because: ${question.reason}. ${found.progress.answers} answered.`),
    make("div", { class: "scroll" }, pairTable(question)),
    make("div", { class: "answers" },
      button("Yes, one", "y", "yes", () => answer("same")),
      button("No, two", "n", "no", () => answer("different")),
      button("Unsure", "u", "", () => answer("unsure")),
      button("Back", "b", "", undo)),
  );
  if (question.evidence.length) main.append(make("details", { open: "" }, make("summary", {}, "Evidence"), waterfall(question.evidence)));
  question.context.forEach((records, side) => {
    if (!records.length) return;
    const more = question.sizes[side] - 1 - records.length;
    main.append(make("details", { open: "" },
      make("summary", {}, `With ${question.ids[side]}: ${question.sizes[side] - 1} more${more > 0 ? `, ${records.length} shown` : ""}`),
      recordTable(records)));
  });
}

function drawWhole(progress) {
  const names = Object.keys(question.shown[0]);
  const table = make("table", { class: "whole" }, make("tr", {}, ...["take out", "entity", ...names].map((name) => make("th", {}, name))));
  const outside = make("p", { class: "outside" }, "Drag records here that do not belong to the others.");
  let dragged = null;
  outside.addEventListener("dragover", (event) => event.preventDefault());
  outside.addEventListener("drop", (event) => {
    event.preventDefault();
    if (dragged) dragged.click();
  });
  question.shown.forEach((record, place) => {
    const box = make("input", { type: "checkbox", value: record.id, "aria-label": `take ${record.id} out` });
    const row = make("tr", { class: `side${question.entities[place] % 2}`, draggable: "true" }, make("td", {}, box),
      make("td", {}, String.fromCharCode(65 + question.entities[place])), ...names.map((name) => make("td", {}, text(record[name]))));
    box.addEventListener("change", () => row.classList.toggle("out", box.checked));
    row.addEventListener("dragstart", (event) => {
      dragged = box;
      event.dataTransfer.setData("text/plain", record.id); // without any, some browsers do not drag
    });
    table.append(row);
  });
  main.append(
    make("h1", {}, "Are all these records one entity?"),
    make("p", { class: "hint" }, "Choose the records that do not belong to the others, or drag them out, then save. Letters say which entity a record is in now. " +
      `Asked because: ${question.reason}. ${progress.answers} answered.`),
    make("div", { class: "scroll" }, table),
    outside,
    make("div", { class: "answers" },
      button("Yes, all one", "y", "yes", () => answer("same")),
      button("All but the chosen ones", "Enter", "part", () => answer("all but")),
      button("No two belong together", "n", "no", () => answer("different")),
      button("Unsure", "u", "", () => answer("unsure")),
      button("Back", "b", "", undo)));
}

function answer(said) {
  if (!question || answering) return; // a second key must not answer a question that nobody has seen
  const body = { number: question.number, answer: said, who: who.value };
  const out = question.kind === "whole" ? chosenIds(main) : [];
  if (said === "all but") {
    if (question.kind !== "whole") return;
    if (!out.length || out.length === question.shown.length) {
      say("Choose the records that do not belong, but not all of them.", true);
      return;
    }
    body.taken_out = out;
  } else if (out.length && said === "same") {
    say("Records are chosen: save with Enter, or take the marks away.", true);
    return;
  }
  answering = true;
  doing(async () => {
    const found = await ask("api/answer", body);
    const changed = found.changed.map((one) => `entity ${one.entity} ${one.records ? `has ${one.records}` : "is gone"}`).join(", ");
    say(`Saved as decision ${found.saved}; ${found.moved} records moved${changed ? `: ${changed} now` : ""}.`);
    drawQuestion(found);
    drawQuality();
  }).finally(() => { answering = false; });
}

function undo() {
  doing(async () => {
    const found = await ask("api/undo", { who: who.value });
    say(found.undone === null ? "There is nothing to take back." : `Decision ${found.undone} is taken back.`);
    drawQuestion(found);
    drawQuality();
  });
}

async function drawQuality() {
  const found = await ask("api/quality").catch(() => null);
  if (!found) return;
  const part = (name, one) => `${name} ${one.estimate.toFixed(3)} (${one.low.toFixed(3)} to ${one.high.toFixed(3)})`;
  document.getElementById("quality").textContent = `Estimated ${part("precision", found.precision)}, ` +
    `${part("recall among candidates", found.recall)}, from ${found.answers} random questions; ` +
    `about ${found.to_halve} more of them halve the interval.`;
}

async function drawEntities(search = "") {
  const box = make("input", { type: "search", placeholder: "Search records", "aria-label": "Search records", value: search });
  const list = make("div");
  const fill = async () => {
    const found = await ask(`api/entities?search=${encodeURIComponent(box.value)}`);
    list.replaceChildren(...found.entities.map((one) => {
      const example = Object.entries(one.example).filter(([key, value]) => key !== "id" && text(value)).map(([, value]) => text(value)).join(" · ");
      const place = make("div");
      const details = make("details", { "data-entity": one.entity }, make("summary", {}, `Entity ${one.entity} (${one.records}): ${example}`), place);
      details.addEventListener("toggle", () => { if (details.open) doing(() => drawEntity(place, one.entity)); });
      return details;
    }));
    if (!found.entities.length) list.append(make("p", {}, "No record holds that."));
  };
  box.addEventListener("change", () => doing(fill));
  main.replaceChildren(make("h1", {}, "Entities"), box, make("div", { class: "row" },
    make("button", { id: "merge", onclick: () => doing(mergeChosen) }, "Merge the entities of chosen records")), list);
  await fill();
}

const chosenIds = (place) => [...place.querySelectorAll("input[type=checkbox]:checked")].map((one) => one.value);

async function mergeChosen() {
  const ids = chosenIds(main);
  if (ids.length < 2) return say("Open entities and choose a record of each.", true);
  const found = await ask("api/merge", { ids, who: who.value });
  say(`Merged; saved as decision ${found.saved}.`);
  await drawEntities(main.querySelector("input[type=search]").value);
}

async function drawEntity(place, entity) {
  const found = await ask(`api/entity?entity=${entity}`);
  const history = found.history.map((one) => make("li", {}, `${text(one.made).slice(0, 19)}: ${one.event} ${one.records} ` +
    `${one.event === "gave" ? "to" : "from"} ${one.other === null ? "new records" : `entity ${one.other}`} (${one.who || one.cause})`));
  place.replaceChildren(
    recordTable(found.records, true),
    make("div", { class: "row" }, make("button", { class: "split", onclick: () => doing(async () => {
      const ids = chosenIds(place);
      if (!ids.length) return say("Choose the records that do not belong.", true);
      const done = await ask("api/split", { ids, who: who.value });
      say(`Split; saved as decision ${done.saved}.`);
      await drawEntities(main.querySelector("input[type=search]").value);
    }) }, "Take chosen records out"),
    make("button", { onclick: () => doing(async () => {
      const done = await ask("api/undo", { who: who.value });
      say(done.undone === null ? "There is nothing to take back." : `Decision ${done.undone} is taken back.`);
      await drawEntities(main.querySelector("input[type=search]").value);
    }) }, "Undo my last decision")),
    make("details", {}, make("summary", {}, "History"), make("ul", {}, ...history)));
}

async function drawDecisions() {
  const found = await ask("api/decisions");
  const table = make("table", {}, make("tr", {}, ...["number", "when", "who", "answer", "records", "asked because"].map((name) => make("th", {}, name))));
  for (const one of found.decisions) {
    const parts = one.parts.map((part) => part.slice(0, 3).join(", ") + (part.length > 3 ? ", ..." : "")).join(" | ");
    table.append(make("tr", {}, ...[one.decision, text(one.made).slice(0, 19), one.who, one.answer, parts, one.asked].map((value) => make("td", {}, text(value)))));
  }
  main.replaceChildren(make("h1", {}, "Decisions"), make("div", { class: "scroll" }, table));
}

function show(name) {
  view = name;
  for (const tab of document.querySelectorAll(".tab")) tab.setAttribute("aria-pressed", String(tab.id === `tab-${name}`));
  doing(async () => {
    question = null;
    if (name === "entities") await drawEntities();
    else if (name === "decisions") await drawDecisions();
    else drawQuestion(await ask(`api/question?who=${encodeURIComponent(who.value)}`));
  });
}

for (const name of ["questions", "entities", "decisions"]) {
  document.getElementById(`tab-${name}`).addEventListener("click", () => show(name));
}
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
  if (typing || event.ctrlKey || event.metaKey || event.altKey || view !== "questions") return;
  const keys = { y: () => answer("same"), n: () => answer("different"), u: () => answer("unsure"), b: undo, Backspace: undo, Enter: () => answer("all but") };
  if (event.key === "Enter" && (!question || question.kind !== "whole" || event.target instanceof HTMLButtonElement)) return;
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});
show("questions");
drawQuality();
