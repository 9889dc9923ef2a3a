"""What the first screen says of cells: what they know beyond a constant answer, and what is missing in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reports.wording import Row, Sentence, be, many, name, names, percent

_NAMED = 6
"""Cells without a row named in a sentence, at most."""


def beyond_constant(cells: Sequence[Row]) -> Iterable[Sentence]:
    """Whether models know more than the better of always yes and always no; silent on cells that leave no room above it."""
    models = [c for c in cells if not c["no_llm"] and c["acc"] is not None and 0 < c["base_rate"] < 1]
    known = [c for c in models if c["acc_ci_day"]]
    above = [c for c in known if c["acc_ci_day"][0] > max(c["base_rate"], 1 - c["base_rate"])]
    if known:
        yield Sentence(
            "constant",
            f"{len(above) or 'None'} of {many(len(known), 'cell')} with a model {be(len(above) or 1)} more accurate than the better constant "
            "answer, by the interval over days.",
            "plain",
            {"cells": len(known), "above": len(above)},
            "results",
        )
    if len(known) < len(models):
        rest = [c for c in models if c not in known]
        yield Sentence(
            "constant",
            f"Whether {many(len(rest), 'cell')} with a model {be(len(rest))} more accurate than a constant answer cannot be said: there is no "
            f"interval over days ({names(rest)}).",
            "care",
            {"cells": len(rest)},
            "precision",
        )


def days(cells: Sequence[Row]) -> Iterable[Sentence]:
    """How far answers of one day are alike, where it is worst; with several epochs the rows repeat, which is said."""
    known = [c for c in cells if not c["no_llm"] and c["effective_n_day"] is not None and c["design_effect_day"] > 1]
    if known:
        worst = max(known, key=lambda c: (c["design_effect_day"], c["cell"]))
        repeated = worst["n_clusters"] < worst["n_scored"]
        what = (
            "Answers of one decision day, and answers to one catalyst again,"
            if repeated
            else "Answers of one decision day"
        )
        yield Sentence(
            "constant",
            f"{what} are alike: at worst ({name(worst)}, {many(worst['n_days'], 'day')}) {_rows(worst)} tell as much as "
            f"{worst['effective_n_day']:,.0f} independent ones.",
            "plain",
            {
                key: worst[key]
                for key in ("n_scored", "n_clusters", "epochs", "n_days", "design_effect_day", "effective_n_day")
            },
            "results",
        )


def _rows(cell: Row) -> str:
    """The scored rows of ``cell``, with the catalysts they are about where some are about the same."""
    rows, catalysts, epochs = cell["n_scored"], cell["n_clusters"], cell["epochs"]
    if rows == catalysts:
        return f"{rows:,} rows"
    how = (
        f"{catalysts:,} catalysts × {epochs:,} epochs"
        if rows == catalysts * epochs
        else f"about {catalysts:,} catalysts"
    )
    return f"{rows:,} rows ({how})"


def coverage(cells: Sequence[Row], unbegun: Sequence[str]) -> Iterable[Sentence]:
    """Which cells lack answers, and what kind of lack it is."""
    if unbegun:
        yield Sentence(
            "coverage",
            f"{many(len(unbegun), 'cell')} that {be(len(unbegun))} part of the run {'has' if len(unbegun) == 1 else 'have'} no row yet and "
            f"{be(len(unbegun))} in no table: {', '.join(unbegun[:_NAMED])}{' and others' if len(unbegun) > _NAMED else ''}.",
            "care",
            {"unbegun": len(unbegun)},
            "warnings",
        )
    unfinished = [c for c in cells if c["state"] != "complete"]
    if unfinished:
        have = sum(sum(c["counts"].values()) for c in unfinished)
        want = sum(c["n"] for c in unfinished)
        yield Sentence(
            "coverage",
            f"{len(unfinished)} of {many(len(cells), 'cell')} {be(len(unfinished))} not complete ({have:,} of {want:,} forecasts have a row): "
            f"{names(unfinished)}. {'Its' if len(unfinished) == 1 else 'Their'} figures may still change.",
            "care",
            {"cells": len(cells), "not_complete": len(unfinished), "rows": have, "n": want},
            "cells",
        )
    below = [c for c in cells if c["coverage"] is not None and c["coverage"] < 1]
    if below:
        worst = min(below, key=lambda c: (c["coverage"], c["cell"]))
        yield Sentence(
            "coverage",
            f"{len(below)} of {many(len(cells), 'cell')} {be(len(below))} below full coverage; the lowest is {name(worst)} "
            f"at {percent(worst['coverage'])} %. Unusable answers count as wrong; what was never answered is not scored.",
            "care",
            {"cells": len(cells), "below": len(below), "lowest": worst["coverage"]},
            "cells",
        )
    if not unfinished and not below and not unbegun and any(c["n"] for c in cells):
        yield Sentence(
            "coverage",
            f"Every forecast of {'the one cell' if len(cells) == 1 else f'all {len(cells):,} cells'} has a usable answer.",
            "good",
            {"cells": len(cells)},
            "cells",
        )
    pending = [c for c in cells if c["n_pending"]]
    if pending:
        count = sum(c["n_pending"] for c in pending)
        yield Sentence(
            "coverage",
            f"{many(count, 'forecast')} of {many(len(pending), 'cell')} {be(count)} about outcomes that are not known yet, so not scored. Add them "
            "with python -m benchmarks resolve once they are.",
            "care",
            {"pending": count, "cells": len(pending)},
            "cells",
        )
    yield from _dropped(cells)
    constant = [c for c in cells if c["constant"] and not c["no_llm"]]
    for alike, why in (
        ([c for c in constant if c["positive_share"] in (0, 1)], "the same answer to everything"),
        ([c for c in constant if c["positive_share"] not in (0, 1)], "labels of one class only"),
    ):
        if alike:
            verb = ("has", "have") if "labels" in why else ("gives", "give")
            yield Sentence(
                "coverage",
                f"{many(len(alike), 'cell')} {verb[len(alike) > 1]} {why}, so MCC is 0 by convention: {names(alike)}.",
                "care",
                {"constant": len(alike)},
                "results",
            )


def _dropped(cells: Sequence[Row]) -> Iterable[Sentence]:
    """Forecasts about outcomes that are neither a rise nor a fall, and cells that have nothing else."""
    some = [c for c in cells if c["n_dropped"]]
    if not some:
        return
    count, rows = sum(c["n_dropped"] for c in some), sum(sum(c["counts"].values()) for c in some)
    empty = [c for c in some if not c["n_scored"]]
    left = (
        f" Nothing is left to score in {names(empty)}, so {'it has' if len(empty) == 1 else 'they have'} no accuracy."
        if empty
        else ""
    )
    yield Sentence(
        "coverage",
        f"{count:,} of {many(rows, 'forecast')} of {many(len(some), 'cell')} {be(count)} about outcomes inside the dead band, neither a rise nor "
        f"a fall, so not scored.{left}",
        "care" if empty else "plain",
        {"dropped": count, "rows": rows, "cells": len(some), "without_a_scored_row": len(empty)},
        "cells",
    )
