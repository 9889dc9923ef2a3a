// One case: the facts, and one forecast or two side by side.

const CALL_COLUMNS = [
  ["purpose", "Purpose"], ["stage", "Stage"], ["status", "Status"], ["attempts", "Attempts"], ["cache_hit", "From cache"], ["prompt_tokens", "In"],
  ["cached_tokens", "of it cached"], ["completion_tokens", "Out"], ["reasoning_tokens", "of it reasoning"], ["cost_usd", "Paid US$"], ["latency_s", "Seconds"],
];

function shownValue(value) {
  if (value === null || value === undefined) return "—";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 6 }) : value;
}

function facts(pairs) {
  return el("dl", { class: "pairs" }, ...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { dir: "auto" }, shownValue(value)))));
}

function grid(heads, rows, label, numeric) {
  const box = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: numeric.has(i) ? "num" : null }, head)))),
      el("tbody", {}, ...rows.map(({ cells, ...attributes }) => el("tr", attributes, ...cells.map((cell, i) => el("td", { class: numeric.has(i) ? "num" : null, dir: "auto" }, cell)))))));
  makeSortable(box.firstElementChild);
  return box;
}

/** The final prompt among the calls of a row: the last forecast that was answered, else the last call. */
function finalCall(calls) {
  const forecasts = calls.filter((call) => call.purpose === "forecast");
  const answered = forecasts.filter((call) => call.status === "ok");
  return answered.at(-1) ?? forecasts.at(-1) ?? calls.at(-1) ?? null;
}

/** Numbers of the lines in the final prompt of a row. */
function promptLines(chunk, detail) {
  const exchange = chunk.exchanges[finalCall(detail.calls ?? [])?.request];
  return new Set((exchange?.messages ?? []).flatMap(([, numbers]) => numbers));
}

class CaseView {
  /** @param list the CaseList; @param chunks gives the details of a chunk; @param go is called with the rows to show next. */
  constructor(list, chunks, go) {
    Object.assign(this, { list, chunks, go });
    this.box = byId("case");
    this.turn = 0;
  }

  /** Shows row `a`, and beside it row `b` (or null). */
  async show(a, b) {
    const { list } = this, i = list.rows.case[a], turn = (this.turn += 1);
    this.box.hidden = false;
    this.box.setAttribute("aria-busy", "true");
    let chunk = null, failure = null;
    try {
      chunk = await this.chunks(list.cases.chunk[i]);
    } catch (error) {
      failure = error.message;
    }
    if (turn !== this.turn) return;  // another case was asked for meanwhile
    const columns = el("div", { class: b === null ? "columns" : "columns two" });
    this.box.replaceChildren(this.head(a, b), columns);
    if (failure !== null) columns.append(el("p", { class: "gap" }, failure));
    else for (const [r, other] of b === null ? [[a, null]] : [[a, b], [b, a]]) columns.append(this.column(r, other, chunk));
    this.box.removeAttribute("aria-busy");
    this.box.querySelectorAll(".timeline-box").forEach((box) => box.redraw());
  }

  close() {
    this.turn += 1;
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  head(a, b) {
    const { list } = this, i = list.rows.case[a], cases = list.cases;
    const at = list.shown.indexOf(a);
    const button = (name, to, text) => el("button", { type: "button", "aria-label": name, disabled: to === undefined, click: () => this.go(to, null) }, text);
    const ret = cases.fwd_ret[i];
    return el("header", { class: "case-head" },
      el("div", { class: "case-title" },
        el("h3", { tabindex: "-1", id: "case-title", dir: "auto" }, cases.stock[i] ?? cases.id[i], el("span", { class: "soft" }, ` ${cases.catalyst_type[i] ?? ""}`)),
        el("div", { class: "buttons no-print" }, button("Previous in the list", at > 0 ? list.shown[at - 1] : undefined, "← Previous"),
          button("Next in the list", at >= 0 ? list.shown[at + 1] : undefined, "Next →"),
          el("button", { type: "button", click: () => this.go(null, null) }, "Close"))),
      facts([["Case", cases.id[i]], ["Benchmark", cases.benchmark[i]], ["Market", cases.market[i]], ["Decision, T", decisionText(list, i)],
        ["Outcome known", cases.resolve[i] === null ? null : `${timeText(cases.resolve[i])} UTC`],
        ["Outcome", `${cases.label[i] ?? "unknown"}${ret === null ? "" : ` (return ${(100 * ret).toFixed(2)} %)`}`]]),
      el("div", { class: "choose no-print" }, this.picker("Forecast by", a, (r) => this.go(r, b === r ? null : b), false),
        this.picker("Beside it", b, (r) => this.go(a, r), true, a)));
  }

  /** A choice among the forecasts of the same case. */
  picker(name, chosen, pick, optional, without = null) {
    const { list } = this, rows = list.rowsOf(list.rows.case[without ?? chosen]).filter((r) => r !== without);
    const text = (r) => `${list.cells.name[list.rows.cell[r]]} · ${list.cells.backbone[list.rows.cell[r]]}${list.rows.epoch[r] ? ` · epoch ${list.rows.epoch[r]}` : ""} · ${answerText(list, r)[0]}`;
    const select = el("select", { change: (event) => pick(event.target.value === "" ? null : Number(event.target.value)) },
      optional ? el("option", { value: "" }, "nothing") : null, ...rows.map((r) => el("option", { value: r, selected: r === chosen }, text(r))));
    return el("label", {}, el("span", {}, name), select);
  }

  column(r, otherRow, chunk) {
    const { list } = this, detail = chunk.rows[r];
    const other = otherRow === null ? null : promptLines(chunk, chunk.rows[otherRow]);
    return el("article", { class: "forecast", "data-row": r }, ...this.answer(r, detail, chunk), ...this.evidence(r, detail), ...this.skills(detail, chunk),
      ...this.prompt(detail, chunk, other), ...this.records(r, detail), ...this.spent(r, detail, list));
  }

  answer(r, detail, chunk) {
    const { list } = this, cell = list.rows.cell[r], prob = list.rows.prob[r];
    const [text, tone] = answerText(list, r);
    return [
      el("h4", { class: "who" }, methodMark(list, r), ` ${list.cells.name[cell]} `, el("span", { class: "soft" }, `${list.cells.backbone[cell]}${list.cells.rehearsal[cell] ? " (not a language model)" : ""}${list.cells.gate[cell] === "strict" ? "" : `, gate ${list.cells.gate[cell]}`}`)),
      el("div", { class: "verdict" },
        el("span", { class: `big ${tone}` }, text),
        prob === null ? el("span", {}, "no probability") : el("span", { class: "bar", role: "img", "aria-label": `probability of a rise ${prob.toFixed(3)}` }, el("i", { style: `left:${100 * prob}%` }), el("b", {})),
        prob === null ? null : el("span", { class: "prob" }, `P(rise) ${prob.toFixed(3)}`)),
      detail.reason === null ? null : el("p", { class: "gap", dir: "auto" }, `Reason: ${detail.reason}`),
      detail.rationale === null ? null : el("blockquote", {}, drawLines(chunk.lines, detail.rationale)),
    ].filter(Boolean);
  }

  evidence(r, detail) {
    const { list } = this, i = list.rows.case[r];
    const title = el("h4", {}, "Evidence before the decision");
    if (detail.evidence === null) return [title, el("p", { class: "gap" }, "The run has no evidence.parquet for this forecast: what entered its prompt is not known.")];
    if (!detail.evidence.kind.length) return [title, el("p", { class: "gap" }, "No record entered a prompt of this forecast.")];
    if (list.cases.time[i] === null) return [title, el("p", { class: "gap" }, "The decision time is not on file, so there is no timeline; the table below lists the records.")];
    const box = el("div", { class: "timeline-box" });
    const choose = (record) => {
      const row = box.closest("article").querySelector(`tr[data-record="${record}"]`);
      row.closest("details").open = true;
      row.scrollIntoView({ block: "center" });
      row.classList.add("chosen");
      setTimeout(() => row.classList.remove("chosen"), 2500);
    };
    box.redraw = () => box.clientWidth && box.replaceChildren(drawTimeline(detail.evidence, list.cases.time[i], list.cases.resolve[i], box.clientWidth, choose));
    return [title, box, el("p", { class: "note" }, "Each mark stands where its record could first be known; the axis is logarithmic. ● ok   ✕ late   ◇ unverifiable")];
  }

  skills(detail, chunk) {
    const evidence = detail.evidence;
    const at = (evidence?.kind ?? []).flatMap((kind, i) => (kind === "skill" ? [i] : []));
    if (!at.length) return [];
    const known = new Set(this.list.cases.id);
    return [el("h4", {}, `Skills and their ancestry (${at.length})`), el("ol", { class: "skills" }, ...at.map((i) => {
      const stored = detail.remembered[evidence.item_id[i]];
      const skill = stored === undefined ? null : readSkill(stored.map((number) => chunk.lines[number]).join("\n"));
      const family = evidence.kind.flatMap((kind, j) => (kind === "skill_ancestor" && evidence.rank[j] === evidence.rank[i] ? [j] : []));
      return el("li", {}, el("div", { dir: "auto" }, skill?.text ?? "What it said is not on file (no memory.parquet beside this cell)."),
        el("p", { class: "soft" }, [skill?.about, `score ${shownValue(evidence.score[i])}`, evidence.item_id[i]].filter(Boolean).join(" · ")),
        family.length ? el("details", {}, el("summary", {}, `from ${family.length} earlier record${family.length === 1 ? "" : "s"}`),
          el("ul", {}, ...family.map((j) => ancestor(evidence, j, known)))) : null);
    }))];
  }

  prompt(detail, chunk, other) {
    const title = el("h4", {}, "Prompt and reply");
    if (detail.calls === null) return [title, el("p", { class: "gap" }, "The run has no calls.parquet for this forecast: its prompts and replies cannot be found.")];
    if (!detail.calls.length) return [title, el("p", { class: "gap" }, "This forecast asked no model.")];
    const last = finalCall(detail.calls), before = detail.calls.filter((call) => call !== last);
    const retrieved = retrievedKind(detail.evidence);
    const found = [title];
    if (before.length) {
      found.push(el("details", {}, el("summary", {}, `${before.length} call${before.length === 1 ? "" : "s"} before the final prompt`),
        ...before.map((call) => el("details", { class: "call" }, el("summary", {}, `${call.purpose} · ${call.status}`), ...drawExchange(call, chunk, retrieved, null)))));
    }
    if (other !== null && chunk.exchanges[last.request]?.messages) found.push(el("p", { class: "note" }, "Lines with a mark in the margin stand in this prompt only."));
    const folded = other !== null && window.matchMedia("(max-width: 900px)").matches;  // two long prompts one under the other
    return [...found, el("details", { open: !folded }, el("summary", {}, `Final prompt: ${last.purpose}`), ...drawExchange(last, chunk, retrieved, other))];
  }

  records(r, detail) {
    const evidence = detail.evidence, decided = this.list.cases.time[this.list.rows.case[r]];
    if (!evidence?.kind.length) return [];
    const rows = evidence.kind.map((kind, i) => ({
      "data-record": i, class: evidence.verdict[i] === "ok" ? null : "not-ok",
      cells: [kindName(kind), evidence.item_id[i] ?? "—", evidence.verdict[i], evidence.gate_rule[i] ?? "—", timeText(momentOf(evidence, i)), relativeText(momentOf(evidence, i), decided),
        timeText(evidence.visible_from[i]), shownValue(evidence.rank[i]), shownValue(evidence.score[i]), shownValue(evidence.chars[i])],
    }));
    const bad = evidence.verdict.filter((verdict) => verdict !== "ok").length;
    const heads = ["Kind", "Record", "Verdict", "Gate rule", "Known at, UTC", "From T", "Visible from, UTC", "Rank", "Score", "Characters"];
    return [el("details", { open: bad > 0 }, el("summary", {}, `All ${rows.length} records with verdict and gate rule${bad ? `, ${bad} late or unverifiable` : ""}`),
      grid(heads, rows, "Records that entered prompts", new Set([7, 8, 9])))];
  }

  spent(r, detail, list) {
    const calls = detail.calls ?? [];
    return [el("h4", {}, "Cost"), facts([["Cost at list price, US$", list.rows.cost[r]], ["Calls", list.rows.calls[r]], ["Tokens, all calls", list.rows.tokens[r]],
      ["Final prompt", detail.prompt_tokens], ["Final reply", detail.completion_tokens], ["Cached", detail.cached_tokens], ["Reasoning", detail.reasoning_tokens],
      ["Seconds at the endpoint", detail.latency_s], ["Model returned", detail.model_returned]]),
    calls.length ? el("details", {}, el("summary", {}, `Single calls (${calls.length})`),
      grid(CALL_COLUMNS.map(([, name]) => name), calls.map((call) => ({ cells: CALL_COLUMNS.map(([key]) => shownValue(call[key])) })), "Calls of this forecast", new Set([3, 5, 6, 7, 8, 9, 10]))) : null].filter(Boolean);
  }
}

/** A skill's stored value in words; a value of another form is shown as it is. */
function readSkill(text) {
  try {
    const skill = JSON.parse(text);
    if (typeof skill.description !== "string") return { text, about: null };
    const advantage = typeof skill.advantage === "number" ? `advantage ${skill.advantage.toFixed(2)}` : null;
    return { text: [skill.name, skill.description].filter(Boolean).join(": "), about: [skill.domain, skill.stability, advantage].filter(Boolean).join(" · ") };
  } catch {
    return { text, about: null };  // a memory may hold plain text
  }
}

function ancestor(evidence, j, known) {
  const id = evidence.item_id[j] ?? "", name = id.replace(/^case:/, "");
  const words = ` known ${timeText(momentOf(evidence, j))} UTC · ${evidence.gate_rule[j] ?? "no rule"}: ${evidence.verdict[j]}`;
  return el("li", {}, known.has(name) ? el("a", { href: `#find=${encodeURIComponent(name)}` }, name) : id, el("span", { class: "soft" }, words));
}

function drawExchange(call, chunk, retrieved, other) {
  const exchange = chunk.exchanges[call.request];
  if (exchange === undefined) {
    const why = call.status === "ok" ? "The prompt and the reply are not kept: the cache does not hold this request, or the report was cut to size." : `The prompt is not kept: only usable replies are stored, and this call ended as ${call.status}.`;
    return [el("p", { class: "gap" }, why)];
  }
  if (exchange.damaged) return [el("p", { class: "gap" }, exchange.damaged)];
  const reply = exchange.reply.map((number) => chunk.lines[number]).join("\n");
  return [
    el("div", { class: "prompt" }, ...exchange.messages.map((message) => drawMessage(chunk.lines, message, retrieved, other))),
    exchange.thinking === null ? null : el("details", {}, el("summary", {}, "Thinking"), drawLines(chunk.lines, exchange.thinking)),
    el("div", { class: "reply" }, el("p", { class: "role" }, `reply${exchange.finish_reason ? ` (${exchange.finish_reason})` : ""}`), drawReply(reply)),
  ].filter(Boolean);
}
