"""What it costs to be strict: the distinct questions of all decisions against those of one build over everything."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.evidence import EvidenceIndex, Gate
from harness.method import Context
from methods.tiem.settings import EehSettings
from tests.support import benchmark_of, config_of
from tests.tiem.corpora import PromptLLM, Shelf, context, fresh, gathered, run

pytestmark = pytest.mark.data


def test_all_decisions_cost_at_most_two_and_a_half_builds(data_root: Path, tmp_path: Path) -> None:
    loaded = benchmark_of(config_of("benchmark=csmd", f"benchmark.root='{data_root}'"))
    index = EvidenceIndex(loaded.evaluation.corpus, loaded.drop_copies)
    lenient = EehSettings(episode_confidence=0.3)  # so that there are enough episodes for themes

    def asked(gate: Gate) -> tuple[PromptLLM, int]:
        llm, eeh, shelf = PromptLLM(), fresh(tmp_path / gate, lenient), Shelf(tmp_path)
        contexts = [context(index, c.stock_id, c.time, llm, shelf, gate) for c in loaded.evaluation.catalysts]

        async def one(ctx: Context) -> int:
            """What a forecast needs."""
            stock, focal = ctx.evidence.stock_id, ctx.evidence.focal()
            shown = [*ctx.evidence.prior(), *ctx.evidence.concurrent(), *([focal] if focal else [])]
            await eeh.propositions_of(shown, stock, ctx)
            await eeh.episodes(stock, ctx)
            return len(await eeh.themes(ctx))

        async def everything() -> int:
            if gate is Gate.PAPER:  # one build over the whole corpus, whatever the decisions need of it
                for stock in sorted(index.stocks):
                    await eeh.propositions_of(index.of_stock(stock), stock, contexts[0])
                    await eeh.episodes(stock, contexts[0])
            return max(await gathered(one(ctx) for ctx in contexts))

        return llm, run(everything())

    (strict, strict_themes), (once, _) = asked(Gate.STRICT), asked(Gate.PAPER)
    print(f"\nstrict: {strict.distinct()} {strict.purposes()}; once: {once.distinct()} {once.purposes()}")
    assert strict_themes > 0, "the theme tier took part"
    assert strict.distinct() <= 2.5 * once.distinct()
    assert strict.distinct() == len(strict.asked), "no question was asked twice"
