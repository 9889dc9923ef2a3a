"""One method, records one by one, a scripted model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.clock import parse_stamp
from harness.evidence import Gate
from harness.memory import CommitKey, MemoryLog
from harness.method import FedRecord, Tools
from harness.records import Document
from methods.fed import Origin, dumps
from methods.record_memory import RecordMemory
from tests.tiem.world import Embedder, Model, Script

TZ = "Asia/Shanghai"


def record(name: str, ts: str, text: str, stock: str = "600001") -> FedRecord:
    stamp = parse_stamp(ts, TZ)
    document = Document(name, stamp, "", text, (stock,))
    return FedRecord(CommitKey(stamp.instant, stamp.instant, name, stamp.day), document, "Harbour Pumps")


async def fed(
    method: RecordMemory, records: Sequence[FedRecord], script: Script, log: MemoryLog | None = None
) -> MemoryLog:
    """The log after ``records``."""
    log = MemoryLog() if log is None else log
    tools = Tools(Model(script), Embedder())
    for one in records:
        proposal = await method.propose(one, tools)
        log.commit(one.key, await method.apply(log.final_state(), proposal, one.key.valid_from, tools))
    return log


async def recalled(method: RecordMemory, log: MemoryLog, question: Any, ts: str, gate: Gate = Gate.STRICT) -> Any:
    """What the memory answers at ``ts``."""
    decision = parse_stamp(ts, TZ)
    state = log.state_at(log.length_at(decision)) if gate is Gate.STRICT else log.final_state()
    return await method.recall(state, question, decision, gate, Tools(Model(lambda *_: {}), Embedder()))


def many(n: int, **fields: Any) -> dict[str, str]:
    """A state of ``n`` objects; ``{n}`` in a text field is its number."""
    stamp = parse_stamp("2020-01-01 09:00", TZ)
    found = {}
    for number in range(n):
        origin = Origin((f"r{number}",), stamp.instant, stamp.instant, stamp.day).plain()
        values = {k: v.replace("{n}", str(number)) if isinstance(v, str) else v for k, v in fields.items()}
        values = {k: number if v is ... else v for k, v in values.items()}
        found[f"r{number:06}"] = dumps({**values, "origin": origin})
    return found


def sources(log: MemoryLog) -> list[dict[str, Any]]:
    """The values in the log, in order."""
    return [json.loads(op.value) for op in log.ops if op.value is not None]
