"""Runners of the memory baselines: the methods themselves, with a scripted model and given vectors."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from harness.clock import parse_stamp
from harness.gateway.reply import parse_object
from harness.gateway.result import Completion
from harness.memory import CommitKey, MemoryLog
from harness.method import FedRecord, Tools, Vectors
from harness.records import Call, Document, Status
from methods.a_mem.method import AMem
from methods.a_mem.method import search as find_notes
from methods.a_mem.notes import notes_of, with_linked
from methods.mem0.method import UPDATE_SCHEMA, Mem0
from methods.mem0.operations import memories_of, search

TZ = "UTC"


def unit(values: Sequence[float]) -> Vectors:
    vector = np.asarray(values, dtype=np.float64)
    return vector / np.linalg.norm(vector)


@dataclass
class Scripted:
    """Answers each purpose with what is given for it, through the gateway's own parser; keeps every prompt."""

    replies: dict[str, Any] = field(default_factory=dict)
    prompts: list[tuple[str, str]] = field(default_factory=list)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        schema: Mapping[str, Any] | None,
        purpose: str,
        essential: tuple[str, ...] | None = None,
        **_: Any,
    ) -> Completion:
        self.prompts.append((purpose, messages[-1]["content"]))
        given = self.replies[purpose]
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        value, problem = parse_object(text, schema, essential) if schema is not None else ({"text": text}, None)
        status = Status.OK if value is not None else Status.INVALID
        call = Call(None, purpose, "memory", "r", "m", None, None, 1, False, 1, 0, 1, 0, None, status, 200)
        return Completion(status, value, text, problem, "r", "s", "m", calls=(call,))


def tools_of(model: Scripted, vectors: Mapping[str, Sequence[float]]) -> Tools:
    async def embed(texts: Sequence[str]) -> Vectors:
        return np.stack([unit(vectors[text]) for text in texts])

    return Tools(model, embed)


def record_of(number: int, ts: str, text: str, stock: str, scope_of: Callable[[Document], str | None]) -> FedRecord:
    """The ``number``-th record of a case: they come in the order of the case, whatever their times."""
    document = Document(f"{number:04}", parse_stamp(ts, TZ), "", text, (stock,))
    at = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    return FedRecord(CommitKey(at, at, document.doc_id, None, scope_of(document)), document, stock)


def mem0_v1_update(inputs: Any, expected: Any) -> None:
    asyncio.run(_mem0(inputs, expected))


async def _mem0(inputs: Any, expected: Any) -> None:
    method = Mem0(name="mem0", scope="stock", neighbours=inputs["neighbours_per_fact"])
    log, model = MemoryLog(), Scripted()
    tools = tools_of(model, inputs["vectors"])
    names: dict[str, str] = {}
    history: list[dict[str, Any]] = []
    for number, (step, want) in enumerate(zip(inputs["steps"], expected["trace"], strict=True)):
        model.replies = {"mem0_facts": step["llm_facts"], "mem0_update": step.get("llm_actions")}
        model.prompts.clear()
        record = record_of(number, step["ts"], step["text"], step["user"], method.scope_of)
        texts: dict[str, str] = {names[k]: m.text for k, m in memories_of(log.final_state()).items()}
        changes = await method.apply(
            log.final_state(record.key.scope), await method.propose(record, tools), record.key.valid_from, tools
        )
        log.commit(record.key, changes)
        returned = []
        for change, decision in zip(changes, _told(step.get("llm_actions")), strict=False):
            if change.object_id is None:
                continue
            name = names.setdefault(change.object_id, f"m{len(names) + 1}")
            event = change.op.upper()
            old, new = texts.get(name), memories_of({"": change.value})[""].text if change.value else None
            texts[name] = new or ""
            history.append({"id": name, "old": old, "new": new, "event": event})
            previous = {"previous_memory": decision.get("old_memory")} if event == "UPDATE" else {}
            returned.append({"id": name, "memory": decision["text"], "event": event, **previous})
        assert len(model.prompts) == want["n_llm_calls"]
        shown = want["old_memories_shown_to_update_llm"]
        assert _numbered(model.prompts) == (None if shown is None else [(m["id"], m["text"]) for m in shown])
        assert returned == want["returned"]
        assert {
            names[k]: {
                "text": m.text, "ts": m.updated_at, "created_at": m.created_at,
                "user_id": (m.scope or "").removeprefix("stock:"),
            }
            for k, m in memories_of(log.final_state()).items()
        } == want["store_after"]  # fmt: skip
    assert history == expected["history"]
    for query, wanted in zip(inputs["search"], expected["search_results"], strict=True):
        memories = memories_of(log.final_state(f"stock:{query['user']}"))
        await method.vectors.fetch([m.text for m in memories.values()], tools.embed)
        vector = unit(inputs["vectors"][query["q"]])
        found = search(memories, vector, method.vectors, query["limit"], query.get("threshold"))
        assert [(names[k], memories[k].text) for k, _ in found] == [(name, text) for name, text, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, _, score in wanted], abs=1e-6)


def _told(reply: Any) -> list[Mapping[str, Any]]:
    """The decisions of a reply that leave a change each: the library returns their texts as the model put them."""
    value, _ = parse_object(reply if isinstance(reply, str) else json.dumps(reply), UPDATE_SCHEMA)
    return [d for d in (value or {"memory": ()})["memory"] if not (d.get("text") and d.get("event") == "NONE")]


def _numbered(prompts: Sequence[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """The numbered memories of the update prompt; None where it was not asked."""
    asked = [prompt for purpose, prompt in prompts if purpose == "mem0_update"]
    if not asked:
        return None
    lines = asked[0].split("## On file\n")[1].split("\n\n## New")[0].splitlines()
    return [(line[1:].split("] ")[0], line.split("] ", 1)[1]) for line in lines if line.startswith("[")]


def amem_paper(inputs: Any, expected: Any) -> None:
    asyncio.run(_amem(inputs, expected))


async def _amem(inputs: Any, expected: Any) -> None:
    method = AMem(name="a_mem", neighbours=inputs["k_neighbours"], rebuild_every=inputs["evo_threshold"])
    log, model = MemoryLog(), Scripted()
    # A record of ours stands with its date and company in front; the vectors of the case are of bare contents.
    unasked = [1.0] * len(next(iter(inputs["vectors"].values())))
    vectors = {_headed(n): inputs["vectors"].get(n["content"], unasked) for n in inputs["notes"]} | inputs["vectors"]
    vectors |= {
        t.replace(n["content"], _headed(n), 1): v for n in inputs["notes"] for t, v in inputs["vectors"].items()
    }
    tools = tools_of(model, vectors)
    names = {f"{number:04}": given["id"] for number, given in enumerate(inputs["notes"])}
    for number, (given, want) in enumerate(zip(inputs["notes"], expected["trace"], strict=True)):
        model.replies = {"a_mem_note": given["llm_analysis"], "a_mem_evolve": given["llm_evolution"]}
        model.prompts.clear()
        record = record_of(number, _stamp(given["time"]), given["content"], "s", method.scope_of)
        proposal = await method.propose(record, tools)
        log.commit(record.key, await method.apply(log.final_state(), proposal, record.key.valid_from, tools))
        assert len(model.prompts) == want["n_llm_calls"]
        shown = re.findall(r"^\[(\d+)\] time: ", model.prompts[-1][1], re.MULTILINE)
        assert [int(p) for p in shown] == want["neighbour_positions_shown"]
        notes = notes_of(log.final_state())
        assert {
            names[name]: {
                "keywords": list(n.keywords),
                "context": n.context,
                "tags": list(n.tags),
                "links": list(n.links),
            }
            for name, n in notes.items()
        } == want["state"]
        bare = {_headed(n): n["content"] for n in inputs["notes"]}
        assert [_replaced(n.index_text, bare) for n in notes.values()] == want["index_texts"]
        assert sum(n.evolved for n in notes.values()) == want["evo_cnt"]
    by_position = {n.position: n for n in notes_of(log.final_state()).values()}
    contents = [n["content"] for n in inputs["notes"]]
    await method.vectors.fetch([n.index_text for n in by_position.values()], tools.embed)
    for query, want in zip(inputs["queries"], expected["queries"], strict=True):
        vector = unit(inputs["vectors"][query["keywords"]])
        hits = [i for i, _ in find_notes(list(by_position.values()), vector, method.vectors, query["k"])]
        assert hits == want["top_positions"]
        read = with_linked(by_position, hits, query["k"])
        assert [contents[p] for p in read] == want["returned_contents_in_order"]


def _headed(note: Any) -> str:
    return f"[{_stamp(note['time'])} s s] {note['content']}"


def _stamp(digits: str) -> str:
    day = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return f"{day} {digits[8:10]}:{digits[10:12]}" if len(digits) >= 12 else day


def _replaced(text: str, pairs: Mapping[str, str]) -> str:
    for old, new in pairs.items():
        text = text.replace(old, new)
    return text
