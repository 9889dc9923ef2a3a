"""One function a kind of case: run the public function it is about and compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.clock import parse_stamp, try_parse_stamp
from harness.evidence import EvidenceIndex, Gate
from harness.gateway.reply import parse_forecast
from harness.records import Corpus, Document
from methods.vanilla_rag import cosine_scores, rank
from reports.metrics import classification

TZ = "UTC"


def vanilla_rag_gate(inputs: Any, expected: Any) -> None:
    documents = [_document(d["id"], d["ts"], d.get("stock"), "") for d in inputs["docs"]]
    vectors = {d["id"]: d["vector"] for d in inputs["docs"]}
    decision = parse_stamp(inputs["cutoff_T"], TZ)
    visible = (
        EvidenceIndex(Corpus(tuple(documents), {}), drop_copies=False).as_of("", decision, Gate.STRICT).retrievable()
    )
    if inputs.get("stock_filter"):
        visible = [d for d in visible if inputs["stock_filter"] in d.stocks]
    scores = cosine_scores(np.asarray([vectors[d.doc_id] for d in visible]), np.asarray(inputs["query_vector"]))
    top = rank(scores, [d.time.instant for d in visible if d.time], [d.doc_id for d in visible], inputs["k"])
    assert len(visible) == expected["n_visible"]
    assert [visible[i].doc_id for i in top] == [name for name, _ in expected["top"]]
    assert [scores[i] for i in top] == pytest.approx([score for _, score in expected["top"]], abs=1e-6)


def forecast_parse(inputs: Any, expected: Any) -> None:
    for reply, want in zip(inputs["replies"], expected, strict=True):
        probability, _, problem = parse_forecast(reply)
        assert (problem is None) == want["valid"], reply
        if want["valid"]:
            assert probability == want["prob_positive"]
            assert ("positive" if probability >= 0.5 else "negative") == want["direction"]  # type: ignore[operator]
        else:
            assert problem


def metrics(inputs: Any, expected: Any) -> None:
    labels = ["positive" if row["true_dir"] > 0 else "negative" for row in inputs["rows"]]
    found = classification(labels, [row["prob_positive"] for row in inputs["rows"]])
    for name in ("acc", "mcc", "f1_macro"):
        assert getattr(found, name) == pytest.approx(expected[name], abs=1e-4)


def tiem_gates(inputs: Any, expected: Any) -> None:
    documents = tuple(_document(d["id"], d["ts"], d["stock"], d["text"]) for d in inputs["docs"])
    index = EvidenceIndex(Corpus(documents, {}), drop_copies=True)
    for query, want in zip(inputs["queries"], expected, strict=True):
        view = index.as_of(query["stock"], parse_stamp(query["T"], TZ), Gate.STRICT)
        focal = view.focal()
        assert ([focal.doc_id] if focal else []) == want["focal_doc_ids"]
        assert [f"F:{d.body}" for d in view.prior()] == want["prior"]
        assert [f"F:{d.body}" for d in view.concurrent()] == want["concurrent"]


def _document(doc_id: str, ts: str, stock: str | None, text: str) -> Document:
    return Document(doc_id, try_parse_stamp(ts, TZ), "", text, (stock,) if stock else ())
