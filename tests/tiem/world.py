"""A small world around TIEM: one stock with documents, a hypergraph and a memory that are given, a model that is scripted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from harness.clock import Stamp, parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.gateway.result import Completion
from harness.memory import State
from harness.method import Context, Lesson, Tools, Vectors
from harness.records import Call, Catalyst, Corpus, Document, Forecast, Outcome, ResolvedCase, Status, Stock
from methods.tiem.method import Tiem
from methods.tiem.records import Episode, Proposition, Theme
from methods.tiem.skill_json import encoded
from methods.tiem.skills import Skill
from tests.tiem.memory import ancestor

TZ = "Asia/Shanghai"


def stamp(text: str) -> Stamp:
    return parse_stamp(text, TZ)


def document(doc_id: str, ts: str, body: str, stock: str = "600001") -> Document:
    return Document(doc_id, stamp(ts), "", body, (stock,))


FOCAL = document("d4", "2021-03-10 08:00", "Harbour Pumps expects its profit to double. Orders for valves are strong.")
DOCUMENTS = (
    document("d1", "2021-01-05 09:00", "Harbour Pumps wins a port contract."),
    document("d2", "2021-02-01 18:00", "Harbour Pumps opens a second plant."),
    document("d3", "2021-03-10 07:30", "A broker raises its target for Harbour Pumps."),
    FOCAL,
    document("d5", "2021-03-12 08:00", "Harbour Pumps shares rose sharply."),
)
CASE = Catalyst("c100", "600001", "Harbour Pumps", "earnings_preann", stamp("2021-03-10 09:15"), market="CN", horizon=5)


def proposition(source: Document, sentence: str, index: int = 0) -> Proposition:
    return Proposition(source.doc_id, 0, index, source.stocks[0], source.time, sentence)


@dataclass
class Graph:
    """A hypergraph that is simply given."""

    episodes_: Sequence[Episode] = ()
    themes_: Sequence[Theme] = ()

    async def propositions_of(self, documents: Sequence[Document], stock: str, ctx: Context) -> tuple[Proposition, ...]:
        return tuple(
            proposition(d, sentence.strip(" .") + ".", index)
            for d in documents
            for index, sentence in enumerate(d.body.split(". "))
        )

    async def episodes(self, stock: str, ctx: Context) -> list[Episode]:
        return list(self.episodes_)

    async def themes(self, ctx: Context) -> list[Theme]:
        return list(self.themes_)


GRAPH = Graph(
    [
        Episode(
            "e1", "600001", "announce_chain", "A contract led to a second plant.", stamp("2021-01-05 09:00"),
            stamp("2021-02-01 18:00"), ("d1#0.0", "d2#0.0"), 0.9,
        )
    ],
    [
        Theme(
            "t1", "Port renewal", "Ports order new equipment from several makers.", "tech_wave", 0.8,
            ("600001", "600002"), (), ("e1", "e9"), stamp("2021-01-02 09:00"), stamp("2021-02-20 09:00"),
            datetime(2021, 3, 1, tzinfo=UTC),
        )
    ],
)  # fmt: skip


def vector(text: str) -> Vectors:
    """Words in common make texts alike: counts of words in 64 hashed places, length 1."""
    counts = np.zeros(64, dtype=np.float32)
    for word in text.casefold().split():
        counts[hashlib.sha256(word.encode()).digest()[0] % 64] += 1
    norm = float(np.linalg.norm(counts))
    return counts / norm if norm else counts


@dataclass
class Embedder:
    asked: list[list[str]] = field(default_factory=list)

    async def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return np.stack([vector(text) for text in texts])


Script = Callable[[str, str], Mapping[str, Any] | Status]
"""(purpose, prompt) -> the value of the reply, or the status of a call without one."""


@dataclass
class Model:
    """Answers by script and keeps every prompt."""

    script: Script
    prompts: list[tuple[str, str]] = field(default_factory=list)

    async def complete(self, messages: Sequence[Mapping[str, str]], *, purpose: str, **_: Any) -> Completion:
        prompt = "\n\n".join(f"<{m['role']}>\n{m['content']}" for m in messages)
        self.prompts.append((purpose, prompt))
        said = self.script(purpose, prompt)
        status, value = (said, None) if isinstance(said, Status) else (Status.OK, dict(said))
        call = Call(None, purpose, "forecast", "r", "m", None, None, 1, False, 100, 0, 10, 0, None, status, 200)
        return Completion(
            status, value, "text", None if value else f"{purpose} is {status}", "r", "s", "m", calls=(call,)
        )

    def purposes(self) -> list[str]:
        return [purpose for purpose, _ in self.prompts]


def replies(purpose: str, prompt: str) -> Mapping[str, Any] | Status:
    """A sensible answer to everything a forecast asks."""
    return {
        "forecast": {"reasoning": "Orders are strong.", "prob_positive": 0.6},
        "scmr_predicate": {
            "predicate": "IF profit doubles THEN positive",
            "evidence_types": ["focal", "episode"],
            "expected_direction": "positive",
        },
        "scmr_judge": {"reason": "Profit is to double.", "direction": "positive", "support": 0.5},
    }[purpose]


def skill(n: int, name: str, description: str, domain: str = "earnings_preann", advantage: float = 0.2) -> Skill:
    """A skill that is known from day ``n`` of 2020 on."""
    known = ancestor(n)
    return Skill(name, description, domain, advantage, ("profit",), known.resolve_time, (f"c{n}",), (known,))


SKILLS = {
    "sk_1": skill(10, "Doubling profit", "IF Harbour expects profit to double THEN positive because orders are strong."),
    "sk_2": skill(20, "Target raised", "IF a broker raises its target for profit THEN negative because it is priced in.",
                  advantage=-0.1),
}  # fmt: skip
MEMORY: State = {key: encoded(found) for key, found in SKILLS.items()}


@dataclass
class Memory:
    """The view of a memory: the learner's own ``recall`` on a given state."""

    learner: Tiem
    state: State
    decision: Stamp
    gate: Gate
    tools: Tools

    async def recall(self, question: Any) -> Any:
        return await self.learner.recall(self.state, question, self.decision, self.gate, self.tools)


def context(
    method: Tiem,
    model: Model,
    *,
    gate: Gate = Gate.STRICT,
    state: State | None = MEMORY,
    graph: Graph = GRAPH,
    documents: Sequence[Document] = DOCUMENTS,
    chars: int | None = 8_000,
    warnings: list[str] | None = None,
) -> Context:
    """The world as of ``CASE``."""
    stocks = {"600001": Stock("600001", "Harbour Pumps")}
    embed = Embedder()
    learner = method.learner()
    memory = None
    if learner is not None and state is not None:
        memory = Memory(learner, state, CASE.time, gate, Tools(model, embed))
    return Context(
        benchmark="tests",
        gate=gate,
        evidence=EvidenceIndex(Corpus(tuple(documents), stocks), drop_copies=True).as_of("600001", CASE.time, gate),
        experience=(),
        memory=memory,
        llm=model,
        build_llm=model,
        embed=embed,
        shared=lambda key, make: graph,  # type: ignore[arg-type, return-value]
        feed_cases=True,
        context_chars=chars,
        rng=lambda: np.random.default_rng(0),
        warn=(warnings if warnings is not None else []).append,
    )


def resolved(n: int, label: str = "positive", focal: Document | None = FOCAL) -> ResolvedCase:
    """A case decided on day ``n`` of 2020 whose outcome is known a week later."""
    decided = datetime(2020, 1, 1, 9, 15) + timedelta(days=n)
    case = Catalyst(
        f"c{n}", "600001", "Harbour Pumps", "earnings_preann", stamp(decided.strftime("%Y-%m-%d %H:%M")), "CN", 5
    )
    known = case.time.instant + timedelta(days=7)
    outcome = Outcome(
        case.catalyst_id, label, 0.03 if label == "positive" else -0.03, known, decided.date(), known.date()
    )
    return ResolvedCase(case, outcome, focal)


def lesson(n: int, label: str = "positive", prob: float | None = 0.7, status: Status = Status.OK) -> Lesson:
    return Lesson(resolved(n, label), Forecast(status, prob, rationale="Strong orders. " * 100))


def path_of(name: str) -> Path:
    return Path(__file__).parent / "golden" / f"{name}.txt"
