// The viewer at work: unpack the index, wire the filters, and keep the address in step with what is shown.

/** Details of a chunk, unpacked once; from inside the page, or from a file beside it. The last few are kept. */
function chunkReader(folder) {
  const kept = new Map();
  const waiting = new Map();
  const parsed = document.readyState === "loading" ? new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true })) : Promise.resolve();
  window.caseChunk = (number, base64) => waiting.get(number)?.(base64);
  const beside = (number) => new Promise((resolve, reject) => {
    waiting.set(number, resolve);
    const missing = `The details of this case are in ${folder}/${number}.js, beside report.html, and that file is not there. Keep the folder with the page.`;
    document.head.append(el("script", { src: `${folder}/${number}.js`, error: () => reject(new Error(missing)) }));
  });
  return (number) => {
    if (!kept.has(number)) {
      const details = (folder === null ? parsed.then(() => byId(`chunk-${number}`).textContent) : beside(number)).then(unpacked);
      details.catch(() => kept.delete(number));
      kept.set(number, details);
      if (kept.size > 6) kept.delete(kept.keys().next().value);
    }
    return kept.get(number);
  };
}

class CaseApp {
  constructor(index) {
    this.list = new CaseList(index);
    this.view = new ListView(this.list, (r) => this.go(r, null));
    this.detail = new CaseView(this.list, chunkReader(index.folder), (a, b) => this.go(a, b));
    for (const control of document.querySelectorAll("[data-filter]")) {
      control.addEventListener(control.tagName === "SELECT" ? "change" : "input", () => this.filter());
    }
    byId("case-reset").addEventListener("click", () => {
      this.list.filters = {};
      byId("case-search").value = "";
      this.refresh();
    });
    for (const head of document.querySelectorAll("[data-sort]")) head.addEventListener("click", () => this.sort(head.dataset.sort));
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => this.route());
    window.addEventListener("resize", () => document.querySelectorAll(".timeline-box").forEach((box) => box.redraw()));
    this.refresh(false);
    this.route();
  }

  filter() {
    const chosen = {};
    for (const control of document.querySelectorAll("[data-filter]")) if (control.value !== "") chosen[control.dataset.filter] = control.value;
    this.list.filters = chosen;
    this.refresh();
  }

  sort(by) {
    const { sort } = this.list;
    this.list.sort = { by, descending: sort.by === by ? !sort.descending : false };
    this.refresh(false);
  }

  /** Applies the filters, draws the list, its counts and its options; the address follows where `write`. */
  refresh(write = true) {
    const { list } = this;
    list.apply();
    for (const name of FILTERS) this.options(name);
    for (const head of document.querySelectorAll("[data-sort]")) {
      const on = head.dataset.sort === list.sort.by;
      head.classList.toggle("on", on);
      head.setAttribute("aria-label", `Sort by ${HEADS[head.dataset.sort]}${on ? `, now ${list.sort.descending ? "descending" : "ascending"}` : ""}`);
      head.textContent = `${HEADS[head.dataset.sort]}${on ? (list.sort.descending ? " ↓" : " ↑") : ""}`;
    }
    const tally = { 1: 0, 0: 0, null: 0 };
    for (const r of list.shown) tally[list.rows.right[r]] += 1;
    const n = (count) => count.toLocaleString("en");
    byId("case-count").textContent = `${n(list.shown.length)} of ${n(list.size)} forecasts: ${n(tally[1])} right, ${n(tally[0])} wrong, ${n(tally[null])} not scored.`;
    byId("case-none").hidden = list.shown.length > 0;
    this.view.reset();
    if (write) history.replaceState(null, "", this.address(this.current?.[0] ?? null, this.current?.[1] ?? null));
  }

  /** The options of a filter with how many forecasts each would leave. */
  options(name) {
    const select = byId(`case-${name}`), counts = this.list.counts[name];
    const words = [...counts.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    select.replaceChildren(el("option", { value: "" }, "all"),
      ...words.map((word) => el("option", { value: word, selected: this.list.filters[name] === word }, `${word} (${counts.get(word).toLocaleString("en")})`)));
    select.closest("label").classList.toggle("on", this.list.filters[name] !== undefined);
  }

  address(a, b) {
    const words = new URLSearchParams(this.list.filters);
    if (a !== null) {
      words.set("case", this.list.caseName(a));
      words.set("a", this.list.nameOf(a));
      if (b !== null) words.set("b", this.list.nameOf(b));
    }
    return `#${words.toString().replaceAll("%2F", "/") || "cases"}`;
  }

  /** Goes to row `a` with `b` beside it (null for none); `a` null closes the case. */
  go(a, b) {
    const to = this.address(a, b);
    if (location.hash === to) this.route();
    else location.hash = to;
  }

  /** Shows what the address says. */
  route() {
    const hash = location.hash.slice(1);
    if (hash !== "cases" && byId(hash)) return undefined;  // a section of the page
    const words = new URLSearchParams(hash);
    const { list } = this;
    const filters = Object.fromEntries([...FILTERS, "search"].filter((name) => words.get(name)).map((name) => [name, words.get(name)]));
    if (words.has("case") || words.has("find") || Object.keys(filters).length) {
      if (JSON.stringify(filters) !== JSON.stringify(list.filters) && !words.has("find")) {
        list.filters = filters;
        byId("case-search").value = filters.search ?? "";
        this.refresh(false);
      }
    }
    byId("case-lost").hidden = true;
    const wanted = this.wanted(words);
    if (wanted === undefined) return this.lost(words);
    if (wanted === null) {
      if (this.current) {
        this.current = null;
        this.detail.close();
        byId("case-list").focus({ preventScroll: true });
      }
      return undefined;
    }
    const fresh = this.current?.[0] !== wanted[0];
    this.current = wanted;
    const at = list.shown.indexOf(wanted[0]);
    if (at >= 0) this.view.move(at);
    return this.detail.show(...wanted).then(() => {
      byId("case").scrollIntoView({ block: "start" });
      if (fresh) byId("case-title").focus({ preventScroll: true });
    });
  }

  /** The rows that an address names: [a, b], null if it names none, undefined if they are not in this report. */
  wanted(words) {
    const { list } = this;
    if (words.has("find")) {
      const i = list.cases.id.indexOf(words.get("find"));
      return i < 0 ? undefined : [list.start[i], null];
    }
    if (!words.has("case")) return null;
    const i = list.first.get(words.get("case"));
    if (i === undefined) return undefined;
    const rows = list.rowsOf(i);
    const row = (name) => rows.find((r) => list.nameOf(r) === name || list.cells.cell[list.rows.cell[r]] === name);
    const a = words.has("a") ? row(words.get("a")) : rows[0];
    const b = words.has("b") ? row(words.get("b")) : null;
    return a === undefined || b === undefined ? undefined : [a, b];
  }

  lost(words) {
    this.current = null;
    this.detail.close();
    const lost = byId("case-lost");
    lost.hidden = false;
    lost.textContent = `This report holds no forecast ${words.get("a") ?? ""} of case ${words.get("case") ?? words.get("find")}. The link may come from another report.`;
    lost.scrollIntoView({ block: "center" });
  }

  key(event) {
    if (!this.current || event.target.closest("input, select, textarea, [role=listbox]") || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.list.shown.indexOf(this.current[0]);
    const next = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") this.go(null, null);
    else if (next && at >= 0 && !event.target.closest(".scroll") && this.list.shown[at + next] !== undefined) this.go(this.list.shown[at + next], null);
    else return;
    event.preventDefault();
  }
}

if (typeof DecompressionStream === "undefined") {
  byId("case-count").textContent = "This browser cannot unpack the forecasts (it has no DecompressionStream); use one from 2023 or later.";
} else {
  unpacked(byId("case-index").textContent).then((index) => {
    window.caseApp = new CaseApp(index);
    byId("case-viewer").hidden = false;
    byId("cases").dataset.ready = Math.round(performance.now());
  });
}
