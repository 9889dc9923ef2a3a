// Prompts by their streams: which part of a prompt is the question, which is evidence of what kind.

/** Headings that open a stream. Any other line, whatever it looks like, belongs to the stream it stands in. */
const STREAMS = [
  [/^## (Catalyst|The case|The new case)$/, "question"],
  [/^##+ Focal document/, "focal"],
  [/^## Other documents about the company on the same day$/, "concurrent"],
  [/^## (Retrieved context|The evidence)$/, "context"],
  [/^### Experience: /, "skill"],
  [/^### Episodes: /, "episode"],
  [/^### Themes: /, "theme"],
  [/^### Earlier statements /, "prior"],
  [/^## (The rule|The predicate)$/, "skill"],
  [/^(-----Entities-----|Entities:)$/, "entity"],
  [/^(-----Relationships-----|Relations:|Relationships:)$/, "relation"],
  [/^Statements and what they are about:$/, "hyperedge"],
  [/^(-----Reports-----|Reports:)$/, "community"],
  [/^(-----Sources-----|Sources:|Chunks:|Documents:)$/, "chunk"],
  [/^## (Your answer|Your verdict|What to give)$/, "answer"],
];
const STREAM_NAMES = { question: "Question", context: "Retrieved context", answer: "Instructions", role: "Role" };
const FRAME = ["question", "focal", "concurrent", "context", "answer", "role", "skill_ancestor"];

/** What retrieved text without headings of its own is: the kind that most of the retrieved records have. */
function retrievedKind(evidence) {
  const counts = new Map();
  for (const kind of evidence?.kind ?? []) if (!FRAME.includes(kind)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "context";
}

/** Splits the lines of a message into streams: [{kind, at: [numbers of lines]}]. */
function streamsOf(lines, numbers, role) {
  const parts = [{ kind: role === "system" ? "role" : "question", at: [] }];
  for (const number of numbers) {
    const stream = role === "system" ? undefined : STREAMS.find(([pattern]) => pattern.test(lines[number]));
    if (stream) parts.push({ kind: stream[1], at: [number] });
    else parts[parts.length - 1].at.push(number);
  }
  const blank = (number) => lines[number].trim() === "";
  for (const part of parts) while (part.at.length && blank(part.at.at(-1))) part.at.pop();
  return parts.filter((part) => part.at.length);
}

/** A message as streams, each with its colour and name; lines that `other` (a set of numbers, or null) does not hold are marked. */
function drawMessage(lines, [role, numbers], retrieved, other) {
  const block = el("div", { class: "message" }, el("p", { class: "role" }, role));
  for (const part of streamsOf(lines, numbers, role)) {
    const kind = part.kind === "context" && part.at.length > 1 ? retrieved : part.kind;  // a heading alone opens streams of its own
    const name = part.kind === "context" && kind !== "context" ? `Retrieved: ${kindName(kind).toLowerCase()}` : STREAM_NAMES[kind] ?? kindName(kind);
    const plain = kind in STREAM_NAMES;
    block.append(el("div", { class: plain ? "stream plain" : "stream", style: `--stream:${plain ? "var(--faint)" : kindColour(kind)}`, "data-stream": kind },
      el("p", { class: "stream-name" }, name), drawLines(lines, part.at, other)));
  }
  return block;
}

/** Lines of text, each in its own direction: left to right or right to left by its first letter. */
function drawLines(lines, numbers, other = null) {
  return el("div", { class: "text" }, ...numbers.map((number) =>
    el("div", { dir: "auto", class: other !== null && lines[number].trim() && !other.has(number) ? "only" : null }, lines[number] || "\u00a0")));
}

/** A reply: JSON is set out, anything else stands as it came. */
function drawReply(text) {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    shown = text;  // not JSON: a method may ask for plain text
  }
  return el("pre", { class: "text", dir: "auto" }, shown);
}
