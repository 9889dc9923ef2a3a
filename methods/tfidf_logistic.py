"""TF-IDF and logistic regression on the text of resolved cases: what words alone tell, without a language model.

The regression at T is fitted on what was known at T, vocabulary weights included: the terms are hashed, so no vocabulary is learned
from later texts, and the document frequencies are those of the cases resolved before T. Terms are runs of characters, which works for
Chinese and English alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy.sparse import csr_matrix, vstack
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression

from harness.method import Context
from harness.records import POSITIVE, Catalyst, Document, Forecast, ResolvedCase, Status
from methods.asking import content_key
from methods.base import BaseMethod
from methods.concurrency import Once
from methods.naive import share


class TfidfLogistic(BaseMethod):
    """P(positive) by the focal text; the share of positive cases where there is no text, or nothing to learn from.

    Attributes:
        c: inverse strength of the L2 penalty (scikit-learn's ``C``).
        shortest, longest: characters of a term.
        buckets: number of hash buckets.
        fewest: cases with a text from which on a regression is fitted.
    """

    uses_llm: ClassVar[bool] = False
    c: float = Field(1.0, gt=0)
    shortest: int = Field(2, ge=1)
    longest: int = Field(4, ge=1)
    buckets: int = Field(2**18, ge=2)
    fewest: int = Field(20, ge=2)

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        focal = ctx.evidence.focal()
        known = [r for r in ctx.experience if r.focal is not None]
        labels = {r.outcome.label for r in known}
        if focal is None or len(known) < self.fewest or len(labels) < 2:
            return share(ctx.experience, "experience cases")
        key = content_key("tfidf-logistic", self.model_dump(mode="json", exclude={"name", "c", "fewest"}))
        terms = ctx.shared(f"terms-{key[:16]}", lambda _: _Terms(self.shortest, self.longest, self.buckets))
        models = ctx.shared(f"tfidf-logistic-{key[:16]}-{self.c}", lambda _: Once[str, _Fitted](most=8))
        name = content_key(ctx.benchmark, [r.case.catalyst_id for r in known])
        model = await models.get(name, lambda: asyncio.to_thread(_fit, known, terms, self.c))
        probability = model.probability(terms.of(focal))
        return Forecast(Status.OK, probability, rationale=f"fitted on {len(known)} resolved cases with a text")


class _Terms:
    """Counts of a document's terms; each document is read once."""

    def __init__(self, shortest: int, longest: int, buckets: int) -> None:
        self._vectorizer = HashingVectorizer(
            analyzer="char_wb", ngram_range=(shortest, longest), n_features=buckets, alternate_sign=False, norm=None
        )
        self._known: dict[str, csr_matrix] = {}

    def of(self, document: Document) -> csr_matrix:
        """Counts (1, buckets)."""
        text = document.text
        if text not in self._known:
            self._known[text] = self._vectorizer.transform([text])
        return self._known[text]


class _Fitted:
    """A regression with the document frequencies that it was fitted with."""

    def __init__(self, frequencies: TfidfTransformer, regression: LogisticRegression) -> None:
        self._frequencies, self._regression = frequencies, regression

    def probability(self, counts: csr_matrix) -> float:
        """P(positive) of one document."""
        (row,) = self._regression.predict_proba(self._frequencies.transform(counts))
        return float(row[list(self._regression.classes_).index(True)])


def _fit(known: Sequence[ResolvedCase], terms: _Terms, c: float) -> _Fitted:
    counts = vstack([terms.of(r.focal) for r in known if r.focal is not None], format="csr")
    frequencies = TfidfTransformer(sublinear_tf=True)
    weights = frequencies.fit_transform(counts)
    regression = LogisticRegression(C=c, solver="liblinear", random_state=0)
    regression.fit(weights, np.array([r.outcome.label == POSITIVE for r in known]))
    return _Fitted(frequencies, regression)
