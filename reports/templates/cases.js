// The list of forecasts: columns unpacked once, filters over them, and only the rows in view in the document.

const byId = (id) => document.getElementById(id);

/** An element with attributes (a function is a listener, null leaves one out) and children; text is always text, never markup. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const MARKS = { o: "●", s: "■", D: "◆", "^": "▲", v: "▼", "<": "◀", ">": "▶", P: "✚", X: "✖", "*": "★", p: "⬟", h: "⬢", H: "⬢", d: "◆" };
const FILTERS = ["benchmark", "method", "backbone", "type", "answer", "status", "gate"];
const ANSWERS = { 1: "right", 0: "wrong", null: "not scored" };
const HEADS = { time: "Decided", stock: "Stock", method: "Method", prob: "P(rise)", answer: "Answer", tokens: "Tokens" };

class CaseList {
  constructor(index) {
    Object.assign(this, index);
    this.size = this.rows.case.length;
    this.first = new Map();  // "benchmark/catalyst" -> number of the case
    this.cases.id.forEach((id, i) => this.first.set(`${this.cases.benchmark[i]}/${id}`, i));
    this.start = new Int32Array(this.cases.id.length + 1);
    for (const at of this.rows.case) this.start[at + 1] += 1;
    for (let i = 0; i < this.cases.id.length; i += 1) this.start[i + 1] += this.start[i];
    this.haystack = this.cases.id.map((id, i) => `${id} ${this.cases.stock[i] ?? ""}`.toLowerCase());
    this.words = {
      benchmark: (r) => this.cases.benchmark[this.rows.case[r]], method: (r) => this.cells.name[this.rows.cell[r]],
      backbone: (r) => this.cells.backbone[this.rows.cell[r]], type: (r) => this.cases.catalyst_type[this.rows.case[r]] ?? "unknown",
      answer: (r) => ANSWERS[this.rows.right[r]], status: (r) => this.rows.status[r],
      gate: (r) => this.rows.late[r] === null ? "no evidence on file" : this.rows.late[r] > 0 ? "late or unverifiable" : "all records ok",
    };
    this.codes = {};
    for (const name of FILTERS) this.codes[name] = this.coded(this.words[name]);
    this.filters = {};
    this.orders = new Map();
    this.sort = { by: "time", descending: false };
  }

  /** A text column as numbers, so that a filter compares integers. */
  coded(word) {
    const number = new Map();
    const code = new Int32Array(this.size);
    for (let r = 0; r < this.size; r += 1) {
      const text = word(r);
      if (!number.has(text)) number.set(text, number.size);
      code[r] = number.get(text);
    }
    return { code, number };
  }

  /** All rows in the chosen order, missing values last; each order is made once. */
  ordered() {
    const { by, descending } = this.sort, name = `${by} ${descending}`;
    if (!this.orders.has(name)) {
      const key = {
        time: (r) => this.cases.time[this.rows.case[r]], stock: (r) => this.cases.stock[this.rows.case[r]],
        method: this.words.method, prob: (r) => this.rows.prob[r], answer: (r) => this.rows.right[r], tokens: (r) => this.rows.tokens[r],
      }[by];
      const values = Array.from({ length: this.size }, (_, r) => key(r) ?? null);
      const way = descending ? -1 : 1;
      this.orders.set(name, Int32Array.from(values.keys()).sort((r, s) => {
        const a = values[r], b = values[s];
        if (a === null || b === null) return (a === null) - (b === null) || r - s;
        return (a < b ? -way : a > b ? way : 0) || r - s;
      }));
    }
    return this.orders.get(name);
  }

  /** Filters and orders the rows, and counts how many each value of each filter would leave: one pass over all rows. */
  apply() {
    const search = (this.filters.search ?? "").toLowerCase();
    const found = this.haystack.map((text) => text.includes(search));
    const codes = FILTERS.map((name) => this.codes[name].code);
    const wanted = FILTERS.map((name) => (this.filters[name] === undefined ? null : this.codes[name].number.get(this.filters[name]) ?? -1));
    const counts = FILTERS.map((name) => new Int32Array(this.codes[name].number.size));
    const passes = new Uint8Array(this.size);
    for (let r = 0; r < this.size; r += 1) {
      if (!found[this.rows.case[r]]) continue;
      let misses = 0, missed = 0;
      for (let f = 0; f < codes.length && misses < 2; f += 1) {
        if (wanted[f] !== null && codes[f][r] !== wanted[f]) {
          misses += 1;
          missed = f;
        }
      }
      if (misses === 1) counts[missed][codes[missed][r]] += 1;  // this filter alone keeps the row out
      if (misses > 0) continue;
      passes[r] = 1;
      for (let f = 0; f < codes.length; f += 1) counts[f][codes[f][r]] += 1;
    }
    this.counts = Object.fromEntries(FILTERS.map((name, f) => [name, new Map([...this.codes[name].number].map(([text, i]) => [text, counts[f][i]]))]));
    this.shown = this.ordered().filter((r) => passes[r]);
    this.active = 0;
  }

  rowsOf(caseNumber) {
    return Array.from({ length: this.start[caseNumber + 1] - this.start[caseNumber] }, (_, i) => this.start[caseNumber] + i);
  }

  /** The address of a row within the page, as it stands in a link. */
  nameOf(r) {
    return `${this.cells.cell[this.rows.cell[r]]}.${this.rows.epoch[r]}`;
  }

  caseName(r) {
    const i = this.rows.case[r];
    return `${this.cases.benchmark[i]}/${this.cases.id[i]}`;
  }
}

/** A decision as text: the exchange's day where only that is known, else the instant in UTC. */
function timeText(seconds) {
  return seconds === null ? "unknown" : new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}

function decisionText(list, i) {
  return list.cases.decision_granularity[i] === "day" && list.cases.day[i] ? `${list.cases.day[i]}, end of day` : `${timeText(list.cases.time[i])} UTC`;
}

function methodMark(list, r) {
  const cell = list.rows.cell[r];
  return el("span", { class: "mark", style: `color:${list.cells.colour[cell]}`, "aria-hidden": "true" }, MARKS[list.cells.mark[cell]] ?? "●");
}

function answerText(list, r) {
  if (list.rows.right[r] === 1) return ["✓ right", "right"];
  if (list.rows.right[r] === 0) return [list.rows.status[r] === "ok" ? "✗ wrong" : `✗ ${list.rows.status[r]}`, "wrong"];
  return [list.rows.status[r] === "ok" ? "– no label" : `– ${list.rows.status[r]}`, "open"];
}

/** The list in view: rows are made for what is visible, whatever the number of forecasts. */
class ListView {
  constructor(list, open) {
    this.list = list;
    this.open = open;
    this.box = byId("case-list");
    this.space = el("div", { class: "space" });
    this.box.append(this.space);
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("click", (event) => {
      const row = event.target.closest("[role=option]");
      if (row) this.choose(Number(row.dataset.at));
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  get rowHeight() {
    return this.box.clientWidth < 620 ? 54 : 34;
  }

  reset() {
    this.box.scrollTop = 0;
    this.draw();
  }

  draw() {
    const { list, box, rowHeight } = this;
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - 4);
    const last = Math.min(list.shown.length, Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + 4);
    this.space.style.height = `${list.shown.length * rowHeight}px`;
    this.space.replaceChildren(...Array.from({ length: last - first }, (_, i) => this.row(first + i)));
    if (list.shown.length) box.setAttribute("aria-activedescendant", `option-${list.active}`);
    else box.removeAttribute("aria-activedescendant");
  }

  row(at) {
    const { list } = this, r = list.shown[at], i = list.rows.case[r];
    const [answer, tone] = answerText(list, r);
    const epoch = list.rows.epoch[r] ? ` · epoch ${list.rows.epoch[r]}` : "";
    return el("div", {
      role: "option", id: `option-${at}`, "data-at": at, style: `top:${at * this.rowHeight}px;height:${this.rowHeight}px`,
      "aria-selected": String(at === list.active), "aria-posinset": at + 1, "aria-setsize": list.shown.length, class: at === list.active ? "active" : null,
    },
    el("span", { class: "c-time" }, list.cases.day[i] ?? timeText(list.cases.time[i])),
    el("span", { class: "c-stock", dir: "auto" }, `${list.cases.stock[i] ?? list.cases.id[i]}`, el("span", { class: "soft" }, ` ${list.cases.catalyst_type[i] ?? ""}`)),
    el("span", { class: "c-method" }, methodMark(list, r), ` ${list.cells.name[list.rows.cell[r]]}`, el("span", { class: "soft" }, ` ${list.cells.backbone[list.rows.cell[r]]}${epoch}`)),
    el("span", { class: "c-prob" }, list.rows.prob[r] === null ? "—" : list.rows.prob[r].toFixed(2)),
    el("span", { class: `c-answer ${tone}` }, answer, list.rows.late[r] ? el("span", { class: "flag", title: "late or unverifiable evidence" }, " ⚑") : null),
    el("span", { class: "c-tokens" }, list.rows.tokens[r] === null ? "—" : list.rows.tokens[r].toLocaleString("en")));
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / this.rowHeight) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Enter" && this.list.shown.length) this.choose(this.list.active);
    else if (step !== undefined) this.move(Math.min(this.list.shown.length - 1, Math.max(0, this.list.active + step)));
    else return;
    event.preventDefault();
  }

  move(at) {
    this.list.active = at;
    const top = at * this.rowHeight, { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.box.scrollTop = top + this.rowHeight - clientHeight;
    this.draw();
  }

  choose(at) {
    this.move(at);
    this.open(this.list.shown[at]);
  }
}
