// The evidence of one forecast against time: age before the decision on a logarithmic axis, a lane a kind, the decision at a line.

const KINDS = {
  focal: ["Focal document", "--blue"], concurrent: ["Same day", "--sky"], prior: ["Earlier statements", "--green"],
  episode: ["Episodes", "--amber"], theme: ["Themes", "--pink"], skill: ["Skills", "--orange"], skill_ancestor: ["Skill ancestry", "--orange"],
  chunk: ["Chunks", "--green"], passage: ["Passages", "--green"], memory_note: ["Memory notes", "--pink"], entity: ["Entities", "--amber"],
  relation: ["Relations", "--orange"], community: ["Communities", "--sky"], hyperedge: ["Hyperedges", "--orange"],
};

function kindName(kind) {
  return KINDS[kind]?.[0] ?? kind;
}

function kindColour(kind) {
  return `var(${KINDS[kind]?.[1] ?? "--grey"})`;
}

const MINUTE = 60, HOUR = 3600, DAY = 86400;
const AGES = [
  [MINUTE, "1 min"], [HOUR, "1 h"], [DAY, "1 d"], [7 * DAY, "1 wk"], [30 * DAY, "1 mo"], [91 * DAY, "3 mo"], [365 * DAY, "1 y"], [1826 * DAY, "5 y"],
];

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** How far `seconds` lies from the decision, on the axis. */
function logAge(seconds) {
  return Math.log10(1 + Math.abs(seconds) / MINUTE);
}

/** An age in words, such as "3.2 days". */
function ageText(seconds) {
  const size = Math.abs(seconds);
  for (const [unit, name] of [[365.25 * DAY, "year"], [DAY, "day"], [HOUR, "hour"], [MINUTE, "minute"]]) {
    if (size >= unit) {
      const count = size / unit;
      const shown = count >= 10 || Number.isInteger(count) ? Math.round(count) : count.toFixed(1);
      return `${shown} ${name}${shown === 1 ? "" : "s"}`;
    }
  }
  return `${size} second${size === 1 ? "" : "s"}`;
}

/** When a record is relative to the decision, in words. */
function relativeText(at, decided) {
  if (at === null || decided === null) return "unknown";
  return at === decided ? "at T" : `${ageText(at - decided)} ${at < decided ? "before" : "AFTER"} T`;
}

/** The moment a record could be known; where that is not stored, when it happened. */
function momentOf(evidence, i) {
  return evidence.known_at[i] ?? evidence.ts_end[i] ?? evidence.ts_start[i];
}

/** Marks of the verdict: a dot for ok, a cross for late, a hollow diamond for unverifiable. Told apart without colour. */
function verdictMark(verdict, x, y, colour) {
  if (verdict === "late") {
    return svg("path", { d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10`, stroke: "var(--bad)", "stroke-width": 2.5, fill: "none" });
  }
  if (verdict === "unverifiable") {
    return svg("path", { d: `M${x} ${y - 6}l6 6l-6 6l-6 -6z`, stroke: "var(--care)", "stroke-width": 1.8, fill: "var(--page)" });
  }
  return svg("circle", { cx: x, cy: y, r: 4, fill: colour, "fill-opacity": 0.75 });
}

/**
 * The timeline as an SVG element.
 * @param evidence columns of the records of one forecast
 * @param decided the decision, seconds since 1970, or null
 * @param resolved when the outcome was known, or null
 * @param width in CSS pixels
 * @param choose called with the number of a record that is clicked
 */
function drawTimeline(evidence, decided, resolved, width, choose) {
  const kinds = [...new Set(evidence.kind)];
  const narrow = width < 520;
  const names = narrow ? 0 : 128, lane = narrow ? 34 : 24, top = 26, bottom = 24, right = 14;
  const height = top + kinds.length * lane + bottom;
  const moments = evidence.kind.map((_, i) => momentOf(evidence, i)).filter((at) => at !== null);
  const starts = evidence.ts_start.filter((at) => at !== null);
  const oldest = Math.max(logAge(HOUR), ...[...moments, ...starts].filter((at) => at <= decided).map((at) => logAge(at - decided)));
  const newest = Math.max(0, ...[...moments, ...(resolved === null ? [] : [resolved])].filter((at) => at > decided).map((at) => logAge(at - decided)));
  const span = width - names - right - 10;
  const after = newest ? span * 0.22 : 0;
  const line = names + 10 + span - after;
  const place = (at) => at <= decided ? line - (logAge(at - decided) / oldest) * (span - after) : line + (logAge(at - decided) / newest) * after;
  const late = evidence.verdict.filter((verdict) => verdict !== "ok").length;
  const root = svg("svg", {
    width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "timeline",
    "aria-label": `${evidence.kind.length} records before the decision, ${late} of them late or unverifiable; the table of evidence lists them all.`,
  });
  if (newest) root.append(svg("rect", { x: line, y: top - 8, width: width - line - right + 8, height: kinds.length * lane + 8, class: "after" }));
  let free = line - 34;
  for (const [age, name] of [...AGES].filter(([age]) => logAge(age) <= oldest)) {
    const x = place(decided - age);
    if (x > free) continue;
    free = x - 44;
    root.append(svg("line", { x1: x, x2: x, y1: top - 8, y2: height - bottom, class: "tick" }));
    root.append(svg("text", { x, y: height - 8, "text-anchor": x < names + 30 ? "start" : "middle", class: "axis" }, name));
  }
  kinds.forEach((kind, row) => {
    const y = top + row * lane + (narrow ? lane - 10 : lane / 2);
    root.append(svg("line", { x1: names, x2: width - right, y1: y, y2: y, class: "lane" }));
    const count = evidence.kind.filter((other) => other === kind).length;
    root.append(svg("text", { x: narrow ? 0 : names - 8, y: narrow ? y - 11 : y + 4, "text-anchor": narrow ? "start" : "end", class: "lane-name" }, `${kindName(kind)} ${count}`));
    evidence.kind.forEach((other, i) => {
      if (other !== kind) return;
      const at = momentOf(evidence, i), start = evidence.ts_start[i];
      const x = at === null ? names + 10 : place(at);
      const group = svg("g", { class: "record" });
      if (at !== null && start !== null && start < at && kind !== "skill_ancestor") {
        group.append(svg("line", { x1: place(start), x2: x, y1: y, y2: y, stroke: kindColour(kind), "stroke-width": 3, "stroke-opacity": 0.45 }));
      }
      group.append(verdictMark(evidence.verdict[i], x, y, kindColour(kind)));
      group.append(svg("title", {}, `${evidence.item_id[i] ?? ""}\n${relativeText(at, decided)}\n${evidence.gate_rule[i] ?? "no rule"}: ${evidence.verdict[i]}`));
      group.addEventListener("click", () => choose(i));
      root.append(group);
    });
  });
  root.append(svg("line", { x1: line, x2: line, y1: top - 12, y2: height - bottom + 4, class: "decision" }));
  root.append(svg("text", { x: line, y: 10, "text-anchor": after ? "middle" : "end", class: "decision-name" }, "T, decision"));
  if (resolved !== null && resolved > decided) {
    const x = place(resolved);
    root.append(svg("line", { x1: x, x2: x, y1: top - 8, y2: height - bottom, class: "resolved" }));
    root.append(svg("text", { x, y: height - 8, "text-anchor": "end", class: "axis" }, `${after < 150 ? "" : "outcome "}+${ageText(resolved - decided)}`));
  }
  return root;
}
