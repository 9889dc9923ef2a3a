"""A clock that Python does not know of: C code reads the real day, in every world of a hunt the same, so no comparison shows it.

The worlds stand at other days than the real one. Where the real one is written all the same, and the benchmark does not write it itself,
somebody has looked past the clock of the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from harness.hunt.trace import Trace
from harness.hunt.witness import Witness
from harness.records import Benchmark

_FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d")


def real_days() -> tuple[date, ...]:
    """Today in UTC and here, and the day after: a hunt may go on past midnight. To be asked before a world sets its own clock."""
    today = {datetime.now(UTC).date(), datetime.now().astimezone().date()}
    return tuple(sorted(today | {day + timedelta(days=1) for day in today}))


def real_day_in(trace: Trace, benchmark: Benchmark, days: Sequence[date]) -> Witness | None:
    """The first line of a request or an answer in ``trace`` that holds one of ``days``, which ``benchmark`` nowhere holds."""
    written = "\n".join(_written(benchmark))
    forms = [form for day in days for form in map(day.strftime, _FORMS) if form not in written]
    for asked in trace.asked.values():
        said = [(f"request ({request.purpose})", request.text) for request in asked.requests]
        for place, text in (*said, ("answer", asked.answer)):
            for line in text.splitlines():
                if any(form in line for form in forms):
                    return Witness(asked.name, "the real day, past the clock of the world", place, None, line[:300])
    return None


def _written(benchmark: Benchmark) -> Iterable[str]:
    """Every text and stamp of the benchmark."""
    for cases in filter(None, (benchmark.evaluation, benchmark.experience)):
        for document in cases.corpus.documents:
            yield document.text
            yield document.time.text if document.time else ""
        yield from (case.time.text for case in cases.catalysts)
