"""Rows of forecasts.parquet, evidence.parquet and calls.parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.config import CellConfig
from harness.evidence import verdict
from harness.records import (
    EMBED,
    NEGATIVE,
    PENDING,
    POSITIVE,
    Call,
    Catalyst,
    Forecast,
    Outcome,
    Passage,
    Row,
    Status,
    total,
)
from harness.rehearsal import FINGERPRINT as REHEARSAL_FINGERPRINT

_CALL_FIELDS = (
    "purpose", "stage", "request_sha256", "model", "sent_at", "latency_s", "attempts", "cache_hit", "prompt_tokens",
    "cached_tokens", "completion_tokens", "reasoning_tokens", "cost_usd", "status", "http_status",
)  # fmt: skip


def forecast_row(
    cell: str,
    config: CellConfig,
    case: Catalyst,
    outcome: Outcome,
    epoch: int,
    forecast: Forecast,
    calls: Iterable[Call],
) -> Row:
    """One row of forecasts.parquet.

    Totals are over the chat ``calls`` of this forecast, at list price, cached or not. ``latency_s`` is the time that those
    sent now took at the endpoint, waits for limits left out; None if all came from the cache.
    """
    label = None if outcome.label == PENDING else outcome.label
    direction = None
    if forecast.prob_positive is not None:
        direction = POSITIVE if forecast.prob_positive >= 0.5 else NEGATIVE
    chats = [c for c in calls if c.purpose != EMBED]
    sent = [c.latency_s for c in chats if c.latency_s is not None]
    known = [p.source.known_at for p in forecast.shown if p.source.known_at]
    return {
        "cell": cell,
        "method": config.method.name,
        "backbone": config.backbone.name,
        "benchmark": config.benchmark.name,
        "seed": config.run.seed,
        "epoch": epoch,
        "gate": str(config.gate),
        "memory": config.memory,
        "embedder": config.embedder.name,
        "catalyst_id": case.catalyst_id,
        "stock": case.stock_id,
        "market": case.market,
        "catalyst_type": case.catalyst_type,
        "decision_time": case.time.instant,
        "decision_day": case.time.day,
        "decision_granularity": str(case.time.granularity),
        "resolve_time": outcome.resolve_at,
        "label": label,
        "fwd_ret": outcome.fwd_ret,
        "prob_positive": forecast.prob_positive,
        "direction": direction,
        "correct": direction == label if forecast.status.final and label else None,
        "status": str(forecast.status),
        "reason": forecast.reason,
        "rationale": forecast.rationale,
        "n_calls": len(chats),
        "prompt_tokens": forecast.prompt_tokens,
        "completion_tokens": forecast.completion_tokens,
        "total_prompt_tokens": total(c.prompt_tokens for c in chats),
        "total_completion_tokens": total(c.completion_tokens for c in chats),
        "cached_tokens": total(c.cached_tokens for c in chats),
        "reasoning_tokens": total(c.reasoning_tokens for c in chats),
        "cost_usd": total(c.list_cost_usd for c in chats),
        "latency_s": sum(sent) if sent else None,
        "prompt_sha256": forecast.prompt_sha256,
        "reply_sha256": forecast.reply_sha256,
        "model_returned": forecast.model_returned,
        "system_fingerprint": forecast.system_fingerprint,
        "max_evidence_time": max(known, default=None),
        "probe_answer": forecast.probe_answer,
        "rehearsal": config.backbone.rehearsal or forecast.system_fingerprint == REHEARSAL_FINGERPRINT,
    }


def forecast_of(row: Row) -> Forecast:
    """What a memory may learn from a stored row: the forecast without its evidence."""
    return Forecast(Status(row["status"]), row["prob_positive"], row["rationale"], row["reason"])


def evidence_rows(cell: str, case: Catalyst, epoch: int, shown: Sequence[Passage]) -> list[Row]:
    """One row of evidence.parquet for each record that went into the prompt."""
    return [
        {
            "cell": cell,
            "catalyst_id": case.catalyst_id,
            "epoch": epoch,
            "kind": passage.source.kind,
            "item_id": passage.source.item_id,
            "stock": passage.source.stock,
            "ts_start": passage.source.ts_start,
            "ts_end": passage.source.ts_end,
            "known_at": passage.source.known_at,
            "visible_from": passage.source.visible_from,
            "gate_rule": passage.source.gate_rule,
            "verdict": verdict(passage.source, case.time),
            "chars": len(passage.text),
            "rank": passage.rank,
            "score": passage.score,
        }
        for passage in shown
    ]


def call_rows(cell: str, catalyst_id: str | None, epoch: int | None, calls: Iterable[Call]) -> list[Row]:
    """One row of calls.parquet a call; ``catalyst_id`` is None for calls that belong to no forecast."""
    about = {"cell": cell, "catalyst_id": catalyst_id, "epoch": epoch}
    return [{**{name: getattr(call, name) for name in _CALL_FIELDS}, **about} for call in calls]
