"""Knobs of GraphRAG: how it is indexed and searched. Defaults are those of the library (3.1.2) unless said otherwise."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator


class IndexSettings(BaseModel):
    """How the graph, its communities and their reports are made.

    Attributes:
        entity_types: the library's four, and three for finance.
        gleanings: follow-up calls a unit for what was missed.
        description_tokens: descriptions in one merging question.
        description_words: length of a merged description.
        max_cluster_size: communities of this size or more are split.
        use_lcc: communities in the largest connected component only.
        community_level: finest level used.
        report_tokens: input of a report.
        report_words: length of a report.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    entity_types: tuple[str, ...] = ("organization", "person", "geo", "event", "product", "metric", "regulator")
    gleanings: int = Field(1, ge=0)
    description_tokens: int = Field(4_000, ge=100)
    description_words: int = Field(500, ge=1)
    max_cluster_size: int = Field(10, ge=1)
    use_lcc: bool = True
    community_level: int = Field(2, ge=0)
    report_tokens: int = Field(8_000, ge=100)
    report_words: int = Field(2_000, ge=1)


class SearchSettings(BaseModel):
    """How a question is answered from it.

    Attributes:
        top_k: entities mapped to the question; twice as many are selected, as in the library.
        top_k_relations: relations that lead out, for each selected entity.
        unit_share, report_share: of the context; the rest is for entities and relations.
        tokens: context with ``context.budget=native``, and of a batch of reports in global search.
        map_words, reduce_words: length of the answers in global search.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    top_k: int = Field(10, ge=1)
    top_k_relations: int = Field(10, ge=0)
    unit_share: float = Field(0.5, ge=0, le=1)
    report_share: float = Field(0.15, ge=0, le=1)
    tokens: int = Field(12_000, ge=100)
    map_words: int = Field(1_000, ge=1)
    reduce_words: int = Field(2_000, ge=1)

    @model_validator(mode="after")
    def _within_one(self) -> SearchSettings:
        if self.unit_share + self.report_share > 1:
            raise ValueError("unit_share and report_share are shares of one context: together at most 1")
        return self
