"use strict";
// Data becomes text nodes only: nothing that a record holds is ever read as markup.
(() => {
  const STEP = 20; // entries that are shown at a time
  const BARS = 12; // steps of a waterfall; the smaller ones are one
  const sections = JSON.parse(document.getElementById("data").textContent);
  const whole = new Intl.NumberFormat("en");
  const colors = ["#2563a8", "#c2571a", "#2f7d4f", "#8a4fa3", "#9a7d0a", "#b3403a"];

  function make(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "class") made.className = value;
      else made.setAttribute(name, value);
    }
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
  }

  function shown(value) {
    if (value === null || value === undefined) return "";
    if (typeof value !== "number") return String(value);
    if (Number.isInteger(value)) return whole.format(value);
    const size = Math.abs(value);
    return size !== 0 && (size < 1e-4 || size >= 1e7) ? value.toExponential(3) : String(+value.toPrecision(6));
  }

  const cell = (value, text = shown(value)) =>
    make("td", { class: typeof value === "number" ? "number" : "" }, text);

  // how a column writes its numbers: all with as many decimals, so that they can be compared at a glance
  function writer(values) {
    const numbers = values.filter(value => typeof value === "number");
    const largest = numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    if (numbers.every(Number.isInteger) || largest < 1e-3 || largest >= 1e7) return shown;
    const digits = largest < 10 ? 4 : largest < 1000 ? 2 : 1;
    const format = new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    return value => typeof value === "number" ? format.format(value) : shown(value);
  }

  // a list of which so many are shown, with a search, an order and a button for more
  function browser(entries, orders, text, entry, noun) {
    let limit = STEP;
    const list = make("div");
    const told = make("span", { class: "note", role: "status" });
    const more = make("button", { type: "button", onclick: () => { limit += STEP; refresh(); } }, "Show more");
    const search = make("input", { type: "search", placeholder: `Search ${noun}`, "aria-label": `Search ${noun}` });
    const order = make("select", { "aria-label": "Order" });
    for (const name of Object.keys(orders)) order.append(make("option", {}, name));
    const texts = entries.map(each => text(each).toLowerCase());
    function refresh() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = entries.map((_, at) => at).filter(at => words.every(word => texts[at].includes(word)));
      const compare = orders[order.value];
      if (compare) found.sort((a, b) => compare(entries[a], entries[b]) || a - b);
      list.replaceChildren(...found.slice(0, limit).map(at => entry(entries[at])));
      const all = `${whole.format(entries.length)} ${noun}`;
      const some = whole.format(Math.min(limit, found.length));
      told.textContent = !found.length ? `none of ${all}` : !words.length ? `${some} of ${all}`
        : `${some} of ${whole.format(found.length)} found, among ${all}`;
      more.hidden = found.length <= limit;
    }
    search.addEventListener("input", () => { limit = STEP; refresh(); });
    order.addEventListener("change", refresh);
    refresh();
    const controls = make("div", { class: "controls" }, search, Object.keys(orders).length > 1 ? order : null, told);
    return make("div", {}, controls, list, make("div", { class: "controls" }, more));
  }

  function facts(section) {
    const body = make("tbody");
    for (const [name, value] of section.rows) {
      body.append(make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, shown(value))));
    }
    return make("div", { class: "scroll", tabindex: 0 }, make("table", {}, body));
  }

  function table(section) {
    let by = -1, down = false, limit = STEP;
    const body = make("tbody");
    const numeric = section.columns.map((_, at) => section.rows.some(row => typeof row[at] === "number"));
    const writers = section.columns.map((_, at) => writer(section.rows.map(row => row[at])));
    const search = make("input", { type: "search", placeholder: "Search rows", "aria-label": "Search rows" });
    const told = make("span", { class: "note", role: "status" });
    const more = make("button", { type: "button", onclick: () => { limit += 25 * STEP; refresh(); } }, "Show more");
    const head = make("tr", {}, ...section.columns.map((name, at) => make("th",
      { scope: "col", class: numeric[at] ? "number" : "" },
      make("button", { type: "button", onclick: () => { down = by === at ? !down : numeric[at]; by = at; refresh(); } },
        name))));
    let written = null; // what is searched in, made when it first is
    const texts = () => written ??= section.rows.map(row =>
      row.map((value, at) => writers[at](value)).join(" ").toLowerCase());
    function refresh() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = words.length ? section.rows.filter((_, at) => words.every(word => texts()[at].includes(word)))
        : [...section.rows];
      if (by >= 0) {
        const sign = down ? -1 : 1;
        rows.sort((a, b) => a[by] === b[by] ? 0 : a[by] === null ? 1 : b[by] === null ? -1 :
          sign * (numeric[by] ? a[by] - b[by] : String(a[by]).localeCompare(String(b[by]))));
      }
      body.replaceChildren(...rows.slice(0, limit).map(row => make("tr", {},
        ...row.map((value, at) => cell(value, writers[at](value))))));
      told.textContent = `${whole.format(Math.min(limit, rows.length))} of ${whole.format(rows.length)} rows`;
      more.hidden = rows.length <= limit;
    }
    search.addEventListener("input", refresh);
    refresh();
    const long = section.rows.length > 12;
    return make("div", {}, long ? make("div", { class: "controls" }, search, told) : null,
      make("div", { class: "scroll", tabindex: 0 }, make("table", {}, make("thead", {}, head), body)),
      long ? make("div", { class: "controls" }, more) : null);
  }

  function chart(section) {
    const canvas = make("canvas", { role: "img", "aria-label": section.title });
    const place = make("div", { class: "chart" }, canvas);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--soft").trim(), line = style.getPropertyValue("--line").trim();
    const named = section.series.some(one => typeof one.x[0] === "string");
    const datasets = section.series.map((one, at) => ({
      label: one.name,
      data: named ? one.y : one.x.map((x, k) => ({ x, y: one.y[k] })),
      borderColor: colors[at % colors.length],
      backgroundColor: colors[at % colors.length] + (section.style === "bar" ? "cc" : "55"),
      showLine: true,
      pointRadius: one.weight ? one.weight.map(part => 2 + 8 * Math.sqrt(part / Math.max(...one.weight)))
        : one.y.length < 40 ? 3 : 0,
      borderWidth: 2,
    }));
    if (section.style === "diagonal") {
      datasets.push({ label: "as it should be", data: [{ x: 0, y: 0 }, { x: 1, y: 1 }], borderColor: ink,
        borderDash: [4, 4], showLine: true, pointRadius: 0, borderWidth: 1 });
    }
    const axis = (text, extra) => ({ title: { display: Boolean(text), text, color: ink }, ticks: { color: ink },
      grid: { color: line }, ...extra });
    requestAnimationFrame(() => new Chart(canvas, {
      type: section.style === "bar" ? "bar" : named ? "line" : "scatter",
      data: { labels: named ? section.series[0].x : undefined, datasets },
      options: {
        animation: false, maintainAspectRatio: false,
        scales: { x: axis(section.x_label, named || section.style === "bar" ? {} : { type: "linear" }),
          y: axis(section.y_label, section.log_y ? { type: "logarithmic", suggestedMin: section.style === "bar" ? 0.5 : undefined,
            ticks: { color: ink, callback: value => Number.isInteger(Math.log10(value)) ? shown(value) : "" } } : {}) },
        plugins: { legend: { display: datasets.length > 1, labels: { color: ink } } },
      },
    }));
    return place;
  }

  const wordsOf = value => typeof value === "number" ? [] : shown(value).split(/\s+/).filter(Boolean);

  // the words of a column that at most half of the rows have
  function rareWords(rows, at) {
    const counts = new Map();
    let filled = 0;
    for (const row of rows) {
      const words = new Set(wordsOf(row[at]));
      filled += words.size > 0;
      words.forEach(word => counts.set(word, (counts.get(word) || 0) + 1));
    }
    return word => 2 * counts.get(word) <= filled;
  }

  // members side by side, with the words marked in which they differ
  function members(columns, rows, compared = true) {
    const used = columns.map((_, at) => at).filter(at => at === 0 || rows.some(row => shown(row[at])));
    const rare = columns.map((_, at) => compared && at > 0 ? rareWords(rows, at) : () => false);
    const writers = columns.map((_, at) => writer(rows.map(row => row[at])));
    const parts = (value, at) => typeof value === "number" ? [writers[at](value)] : shown(value).split(/(\s+)/)
      .map(part => part.trim() && rare[at](part) ? make("mark", {}, part) : part);
    return make("div", { class: "scroll", tabindex: 0 }, make("table", {},
      make("thead", {}, make("tr", {}, ...used.map(at => make("th", { scope: "col" }, columns[at])))),
      make("tbody", {}, ...rows.map(row => make("tr", {}, ...used.map(at => make("td", {}, ...parts(row[at], at))))))));
  }

  // what a group of rows says for the most part, besides its name: the most frequent value of each column but the ids
  function gist(rows, name) {
    const values = rows[0].slice(1).map((_, at) => {
      const counts = new Map();
      rows.map(row => row[at + 1]).filter(value => value && typeof value === "string")
        .forEach(value => counts.set(value, (counts.get(value) || 0) + 1));
      return [...counts].reduce((most, one) => one[1] > most[1] ? one : most, ["", 0])[0];
    });
    return make("span", { class: "gist" }, values.filter(value => value && value !== name).slice(0, 4).join(" \u00b7 "));
  }

  function entry(summary, body) {
    const content = make("div");
    const made = make("details", { class: "entry" }, make("summary", {}, ...summary), content);
    made.addEventListener("toggle", () => { if (made.open && !content.hasChildNodes()) content.append(...body()); });
    return made;
  }

  function entities(section) {
    const judged = section.entities.some(one => one.coherence !== null);
    const doubt = one => one.coherence === null ? 2 : one.coherence;
    const size = one => one.members.length + one.left_out;
    return browser(section.entities,
      { ...(judged ? { "most doubtful first": (a, b) => doubt(a) - doubt(b) } : {}),
        "largest first": (a, b) => size(b) - size(a), "by name": (a, b) => a.name.localeCompare(b.name) },
      one => [one.name, ...one.members.flat().map(shown)].join(" "),
      one => entry([make("span", { class: "name" }, one.name), section.compared ? gist(one.members, one.name) : make("span", { class: "gist" }),
        make("span", {}, `${shown(size(one))} ${section.noun}`),
        make("span", {}, one.coherence === null ? "" : `coherence ${one.coherence.toFixed(3)}`)],
      () => [members(section.columns, one.members, section.compared),
        one.left_out ? make("p", { class: "note" }, `${shown(one.left_out)} further ${section.noun} are not shown.`) : ""]),
      "entities");
  }

  function waterfall(steps) {
    const few = steps.length <= BARS + 1 ? steps : [...steps.slice(0, BARS),
      [`${steps.length - BARS} smaller ones`, steps.slice(BARS).reduce((sum, one) => sum + one[1], 0)]];
    let sum = 0;
    const spans = few.map(([name, value]) => { const from = sum; sum += value; return [name, value, from, sum]; });
    spans.push(["all", sum, 0, sum]);
    const ends = spans.flatMap(([, , from, to]) => [from, to]);
    const low = Math.min(0, ...ends), high = Math.max(0, ...ends), wide = high - low || 1;
    const place = value => `${100 * (value - low) / wide}%`;
    const grid = make("div", { class: "steps" });
    for (const [name, value, from, to] of spans) {
      const bar = make("span", { class: name === "all" ? "sum" : value < 0 ? "down" : "up" });
      const zero = make("span", { class: "zero" });
      bar.style.left = place(Math.min(from, to));
      bar.style.width = `${Math.max(0.4, 100 * Math.abs(to - from) / wide)}%`;
      zero.style.left = place(0);
      grid.append(make("span", {}, name), make("div", { class: "bar" }, bar, zero),
        make("span", { class: "number" }, (value > 0 ? "+" : "") + value.toFixed(2)));
    }
    return grid;
  }

  // the first values of a record that are there
  const heading = row => row.slice(1).map(shown).filter(Boolean).slice(0, 2).join(" \u00b7 ");

  function pairs(section) {
    return browser(section.pairs,
      { "most doubtful first": (a, b) => Math.abs(a.probability - .5) - Math.abs(b.probability - .5),
        "likeliest first": (a, b) => b.probability - a.probability },
      one => [...one.one, ...one.two].map(shown).join(" "),
      one => entry([make("span", { class: "name" }, `${shown(one.one[0])} and ${shown(one.two[0])}`),
        make("span", { class: "gist" }, [one.one, one.two].map(heading).join(" \u2248 ")),
        make("span", {}, `probability ${one.probability.toFixed(3)}`),
        make("span", {}, one.together ? "together" : "apart")],
      () => [members(section.columns, [one.one, one.two]), one.steps.length ? waterfall(one.steps) : "",
        one.alone === null ? "" : make("p", { class: "note" }, `The two by themselves would be one with a probability of `
          + `${one.alone.toFixed(3)}; with all other records beside them it is ${one.probability.toFixed(3)}.`)]), "pairs");
  }

  function sentences(section) {
    const type = label => label.replace(/^[BIESLU]-/, ""); // the tokens of a span have one color
    const types = [...new Set(section.sentences.flatMap(one => one.labels).map(type))].sort();
    const hue = label => (types.indexOf(type(label)) * 137.5) % 360;
    const least = one => Math.min(1, ...one.probability);
    const wrong = one => one.truth ? one.truth.filter((label, at) => label !== one.labels[at]).length : 0;
    return browser(section.sentences,
      { "as they come": null, "most doubtful first": (a, b) => least(a) - least(b),
        "most mistakes first": (a, b) => wrong(b) - wrong(a) },
      one => [...one.tokens, ...one.labels].join(" "),
      one => make("p", { class: "sentence" }, ...one.tokens.map((token, at) => {
        const sure = one.probability[at], label = one.labels[at], truth = one.truth ? one.truth[at] : label;
        const made = make("span", { class: truth === label ? "token" : "token wrong",
          title: `${label}, probability ${sure.toFixed(3)}${truth === label ? "" : `, truly ${truth}`}` },
        token, make("small", {}, label));
        if (label !== "O") made.style.background = `hsl(${hue(label)} 70% 55% / ${(0.08 + 0.4 * sure).toFixed(2)})`;
        else if (sure < 0.9) made.style.background = `rgb(180 60 60 / ${((0.9 - sure) * 0.6).toFixed(2)})`;
        return made;
      }), one.left_out ? make("span", { class: "note" }, `and ${shown(one.left_out)} further words`) : null), "sentences");
  }

  // few rows and columns are a table with tinted cells; many are a picture
  function matrix(section) {
    const names = Object.keys(section.steps);
    const small = Math.max(section.rows.length, section.columns.length) <= 30;
    const canvas = make("canvas", { class: "heat", width: section.columns.length, height: section.rows.length,
      role: "img", "aria-label": section.title });
    const grid = make("div", { class: "scroll", tabindex: 0 }), told = make("p", { class: "note", role: "status" });
    const largestOf = make("div"), label = make("span");
    const slider = make("input", { type: "range", min: 0, max: names.length - 1, value: 0, "aria-label": "Step" });
    const largest = Math.max(1e-300, ...Object.values(section.steps).flatMap(step => step.map(row => Math.max(0, ...row))));
    const write = writer(Object.values(section.steps).flat(2));
    const share = value => Math.sqrt(Math.max(0, value) / largest);
    const here = () => section.steps[names[slider.value]];
    function drawTable(values) {
      const head = make("tr", {}, make("th", {}, section.row_label && `${section.row_label} \u2193 ${section.column_label} \u2192`),
        ...section.columns.map(name => make("th", { scope: "col", class: "number" }, name)));
      grid.replaceChildren(make("table", {}, make("thead", {}, head), make("tbody", {}, ...values.map((row, r) =>
        make("tr", {}, make("th", { scope: "row" }, section.rows[r]), ...row.map(value => {
          const made = make("td", { class: "number" }, value ? write(value) : "");
          made.style.background = `rgb(37 99 168 / ${(0.7 * share(value)).toFixed(3)})`;
          return made;
        }))))));
    }
    function drawPicture(values) {
      const context = canvas.getContext("2d");
      const image = context.createImageData(section.columns.length, section.rows.length);
      values.forEach((row, r) => row.forEach((value, c) => {
        const part = share(value);
        image.data.set([255 - 218 * part, 255 - 156 * part, 255 - 87 * part, 255], 4 * (r * section.columns.length + c));
      }));
      context.putImageData(image, 0, 0);
      const flat = values.flatMap((row, r) => row.map((value, c) => [section.rows[r], section.columns[c], value]));
      const listed = ([row, column, value]) => value > 0 && !(section.mistakes && row === column);
      const most = flat.filter(listed).sort((a, b) => b[2] - a[2]).slice(0, 200);
      largestOf.replaceChildren(table({ columns: [section.row_label || "row", section.column_label || "column", "value"],
        rows: most }));
    }
    function draw() {
      label.textContent = names[slider.value];
      (small ? drawTable : drawPicture)(here());
    }
    canvas.addEventListener("mousemove", event => {
      const box = canvas.getBoundingClientRect();
      const c = Math.floor((event.clientX - box.left) / box.width * section.columns.length);
      const r = Math.floor((event.clientY - box.top) / box.height * section.rows.length);
      const row = here()[r];
      if (row && c in row) told.textContent = `${section.rows[r]} \u2192 ${section.columns[c]}: ${shown(row[c])}`;
    });
    slider.addEventListener("input", draw);
    draw();
    return make("div", {}, names.length > 1 ? make("div", { class: "controls" }, slider, label) : null,
      ...(small ? [grid] : [canvas, told, largestOf]));
  }

  const kinds = { facts, table, chart, entities, pairs, sentences, matrix };
  const contents = document.getElementById("contents"), main = document.getElementById("sections");
  sections.forEach((section, at) => {
    contents.append(make("a", { href: `#part${at}` }, section.title));
    main.append(make("section", { id: `part${at}`, "data-kind": section.kind }, make("h2", {}, section.title),
      section.note ? make("p", { class: "note" }, section.note) : null, kinds[section.kind](section)));
  });
})();
