"""What LightRAG and HyperGraphRAG are as methods: their common knobs, and the log that cells share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field

from harness.expected import Expected, Range, Survey
from harness.method import Context
from harness.records import Catalyst, Passage
from methods import expected_light, forecasting
from methods.asking import content_key
from methods.base import BaseMethod, template_sha256
from methods.entity_graph import Limits, Node, shown
from methods.expected_graphs import forecasts, tables, vectors
from methods.feed import shown_already
from methods.graph_reading import Form, Reading
from methods.prefix_log import Growing, Log, Logs, feed_as_of

E = TypeVar("E")
G = TypeVar("G", bound=Growing)  # type: ignore[type-arg]


@dataclass(frozen=True, slots=True)
class Grown(Generic[E, G]):
    """A log as of a decision.

    Attributes:
        log: the log.
        n: inserts that make up the state; ``admitted``: those from the first on that T admits.
        hidden: ids of documents that every prompt shows anyway.
    """

    log: Log[E, G]
    n: int
    admitted: int
    hidden: frozenset[str]

    def content(self, chunk: int) -> str | None:
        """Text of ``chunk``; None if every prompt shows its document anyway."""
        record = self.log.chunks[chunk]
        return None if record.item_id.partition("#")[0] in self.hidden else record.text

    def entity_row(self, node: Node, chunks: Sequence[int]) -> Passage:
        """An entity as it stands in a prompt; ``chunks`` speak of it."""
        source = self.log.source("entity", node.name, chunks, node.last)
        return Passage(f"{node.name} ({node.type.lower()}): {shown(node.description)}", source)

    def chunk_row(self, chunk: int) -> Passage:
        """A chunk as it stands in a prompt, with its date."""
        return Passage(self.log.chunks[chunk].text, self.log.chunk_source(chunk))


class Shelf(Generic[E, G]):
    """What cells of a process share: texts read, and the logs made of them."""

    def __init__(self, texts: Reading[E], make_graph: Callable[[], G]) -> None:
        self.texts = texts
        self._logs: Logs[E, G] = Logs(make_graph)

    async def grown(self, ctx: Context, chunk_tokens: int, chunk_overlap: int) -> Grown[E, G]:
        """The log as of the decision of ``ctx``; what is missing is read and inserted first.

        Raises:
            CallFailed: the model could not be asked.
        """
        feed = feed_as_of(ctx, chunk_tokens, chunk_overlap)
        log = self._logs.of(feed.entries)
        await log.reach(feed.entries, self.texts.by(ctx.build_llm))
        return Grown(log, len(feed.entries), feed.admitted, frozenset(shown_already(ctx)))


class GraphMethod(BaseMethod):
    """A method on a graph that grows by one insert a document.

    Attributes:
        top_k: items of a kind that similarity finds.
        chunk_tokens: tokens a chunk.
        chunk_overlap: tokens shared by neighbouring chunks.
        gleanings: rounds in which the model is asked for what it missed in a chunk.
        entity_types: types the model chooses from.
        summary_tokens: tokens from which on a merged description is summarised.
        entity_tokens, relation_tokens, source_tokens: where the tables are cut.
    """

    uses_embedder: ClassVar[bool] = True
    build_templates: ClassVar[tuple[str, ...]]
    top_k: int = Field(60, ge=1)
    chunk_tokens: int = Field(1200, ge=1)
    chunk_overlap: int = Field(100, ge=0)
    gleanings: int = Field(1, ge=0)
    entity_types: tuple[str, ...] = Field(("organization", "person", "geo", "event", "category"), min_length=1)
    summary_tokens: int = Field(500, ge=1)
    entity_tokens: int = Field(4000, ge=1)
    relation_tokens: int = Field(4000, ge=1)
    source_tokens: int = Field(4000, ge=1)

    def instruction_sha256(self) -> str:
        return forecasting.instruction_sha256()

    async def _expected(self, survey: Survey, form: Form[Any], kinds: int, asked: Sequence[Expected]) -> list[Expected]:
        """Calls to read every chunk that the log holds for some decision, ``asked`` about the cases, the forecasts.

        Args:
            survey: what is asked for.
            form: how chunks are read.
            kinds: 2 where relations are described as entities are, else 1.
            asked: questions about the query of every case.
        """
        units = expected_light.units_of(survey, self.chunk_tokens, self.chunk_overlap)
        native = self.entity_tokens + self.relation_tokens + self.source_tokens

        def context(case: Catalyst, ctx: Context) -> Range:
            return tables(units, ctx, native)

        return [
            *expected_light.reading(units, form),
            *expected_light.summaries(units, form, kinds),
            *asked,
            *await forecasts(survey, context),
            *vectors(survey, (), expected_light.embedded(units, self.summary_tokens, 2)),
        ]

    def _limits(self) -> Limits:
        return Limits(self.relation_tokens, self.entity_tokens, self.source_tokens)

    def _shelf(self, ctx: Context, form: Form[E], make_graph: Callable[[], G]) -> Shelf[E, G]:
        """The shelf of all cells whose graphs are built in the same way from the same corpus."""
        built_with: list[Any] = [
            self.chunk_tokens, self.chunk_overlap, self.gleanings, self.entity_types, self.summary_tokens,
            *(template_sha256(name) for name in self.build_templates),
        ]  # fmt: skip
        key = f"{make_graph.__name__}-{content_key(ctx.evidence.corpus_key, built_with)[:16]}"
        return ctx.shared(key, lambda directory: Shelf(Reading(form), make_graph))
