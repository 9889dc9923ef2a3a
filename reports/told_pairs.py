"""What the first screen says of the differences between the reference method and the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from reports.wording import NAMED_AT_MOST, Row, Sentence, be, interval, many, points, signed

ALPHA = 0.05
"""Level of the corrected tests."""
FEWEST_DAYS = 6
"""Signs of five days have 32 patterns, so a two-sided p of 1/16 at least: above ``ALPHA`` whatever the difference."""
_Family = tuple[str, str | None, int | None]


def comparisons(pairs: Sequence[Row], reference: str) -> Iterable[Sentence]:
    """Sentences about ``pairs`` of report.json, a family (backbone, gate, seed) at a time."""
    families: dict[_Family, list[Row]] = {}
    for pair in pairs:
        if pair["diff"] is not None:
            families.setdefault((pair["backbone"], pair["gate"], pair["seed"]), []).append(pair)
    if not families:
        yield _nothing_to_compare(pairs, reference)
    where = {key: _where(key, list(families)) for key in families}
    for tell in (_differences, _undecided, _untested):
        for key, family in families.items():
            yield from tell(where[key], family)


def _where(key: _Family, keys: Sequence[_Family]) -> str:
    """The backbone of a family of comparisons, with gate and seed where families differ in them."""
    extra = [f"{name} {key[i]}" for i, name in ((1, "gate"), (2, "seed")) if len({k[i] for k in keys}) > 1]
    return f"{key[0]} ({', '.join(extra)})" if extra else key[0]


def _nothing_to_compare(pairs: Sequence[Row], reference: str) -> Sentence:
    why = (
        f"no row is scored in both cells of {'the one pair' if len(pairs) == 1 else f'any of {len(pairs):,} pairs'}"
        if pairs
        else f"there is no cell of {reference} with a partner on the same backbone, benchmark, gate and seed"
    )
    remedy = "" if pairs else " Another method can take its place: python -m reports RUN --reference METHOD."
    text = f"No two methods could be compared: {why}, so nothing is said about which is better.{remedy}"
    return Sentence("differences", text, "care", {"pairs": len(pairs)}, "warnings")


def _differences(where: str, family: Sequence[Row]) -> Iterable[Sentence]:
    """Which differences hold after Holm, by rows and by days; which pass by rows alone."""
    tested = [p for p in family if not _untestable(p)]
    if not tested:
        return
    reference = family[0]["a"]
    sure = sorted((p for p in tested if p["significant"]), key=lambda p: -abs(p["diff"]))
    by_rows = [p for p in tested if not p["significant"] and p["p_holm"] is not None and p["p_holm"] <= ALPHA]
    numbers: dict[str, Any] = {
        "pairs": len(family), "tested": len(tested), "significant": len(sure), "alpha": ALPHA, "by_rows_only": len(by_rows),
        "shown": [{key: p[key] for key in ("b", "benchmark", "diff", "ci", "p_holm", "p_cluster_holm")} for p in sure[:NAMED_AT_MOST]],
    }  # fmt: skip
    counted = (
        f"the difference between {reference} and {tested[0]['b']} is {'' if sure else 'not '}significant"
        if len(tested) == 1
        else f"{f'{len(sure):,}' if sure else 'none'} of {len(tested):,} differences between {reference} and another method "
        f"{be(len(sure) or 1)} significant"
    )
    text = f"{where}: {counted} after Holm's correction (α\u00a0=\u00a0{ALPHA:g}), {_tests(tested)}"
    if sure:
        more = f"; and {len(sure) - NAMED_AT_MOST} more" if len(sure) > NAMED_AT_MOST else ""
        text += f": {'; '.join(map(_difference, sure[:NAMED_AT_MOST]))}{more}"
    if by_rows:
        text += (
            f". {many(len(by_rows), 'difference')} would pass by rows alone, but not by the days {'it falls' if len(by_rows) == 1 else 'they fall'} "
            f"on, whose rows move together: do not rely on {'it' if len(by_rows) == 1 else 'them'}"
        )
    yield Sentence("differences", f"{text}.", "care" if by_rows else "plain", numbers, "pairs")


def _tests(tested: Sequence[Row]) -> str:
    """Which tests a significant pair has passed; with several epochs there is none by rows."""
    by_days = sum(p["p_holm"] is None for p in tested)
    if by_days == len(tested):
        return "by decision days"
    return "by rows and by decision days" + (" (with several epochs by days alone)" if by_days else "")


def _undecided(where: str, family: Sequence[Row]) -> Iterable[Sentence]:
    """What cannot be told apart at this n, how large a difference could have been found, and the n that would be needed."""
    left = [p for p in family if not p["significant"] and p["mde"] is not None and not _untestable(p)]
    if not left:
        return
    low, high = min(p["mde"] for p in left), max(p["mde"] for p in left)
    few, most = min(p["n"] for p in left), max(p["n"] for p in left)
    at = f"n\u00a0=\u00a0{few:,}" if few == most else f"n\u00a0=\u00a0{few:,} to {most:,}"
    numbers: dict[str, Any] = {
        "undecided": len(left), "mde_low": low, "mde_high": high, "n_low": few, "n_high": most, "nearest": None,
    }  # fmt: skip
    size = f"{points(low)}" if points(low) == points(high) else f"{points(low)} to {points(high)}"
    found = (
        "Not even methods that never agree would be told apart here"
        if low >= 1
        else f"The smallest difference found with power 0.8, before correction, is {size} points, so no difference found is not the same as "
        "no difference"
    )
    text = f"{where}: {many(len(left), 'comparison')} cannot be told apart at {at}. {found}."
    needed = [p for p in left if p["n_needed"] is not None]
    if needed:
        p = min(needed, key=lambda p: (p["n_needed"] / p["n"], p["benchmark"], p["b"]))
        numbers["nearest"] = {key: p[key] for key in ("b", "benchmark", "diff", "ci", "n", "n_needed")}
        text += (
            f" The nearest to a decision, {_difference(p)}, would need about {p['n_needed']:,} rows instead of {p['n']:,}."
            if p["n_needed"] > p["n"]
            else f" The nearest to a decision, {_difference(p)}, has the rows it needs to be seen alone, but not among {len(family)}."
        )
    yield Sentence("undecided", text, "plain", numbers, "pairs")


def _untested(where: str, family: Sequence[Row]) -> Iterable[Sentence]:
    """Pairs that no test can say anything of, however large the difference looks."""
    alike = [p for p in family if p["n_discordant"] == 0]
    if alike:
        yield Sentence(
            "undecided",
            f"{where}: {_against(alike)} right on the same rows throughout: their accuracy does not differ here, and how far it might is not "
            "known.",
            "care",
            {"without_discordant_rows": len(alike)},
            "pairs",
        )
    rest = [p for p in family if _untestable(p) and p["n_discordant"] != 0]
    one_day = [p for p in rest if p["n_days"] == 1]
    if one_day:
        yield Sentence(
            "undecided",
            f"{where}: all shared rows of {many(len(one_day), 'comparison')} ({_partners(one_day)}) fall on one "
            "decision day. Rows of one day move together, so no test says whether they differ.",
            "care",
            {"on_one_day": len(one_day)},
            "pairs",
        )
    few = [p for p in rest if p["n_days"] is not None and p["n_days"] > 1]
    if few:
        yield Sentence(
            "undecided",
            f"{where}: the shared rows of {many(len(few), 'comparison')} ({_partners(few)}) fall on fewer than {FEWEST_DAYS} decision days, too few "
            f"for the test by days to reach {ALPHA:g}, however large the difference.",
            "care",
            {"on_few_days": len(few), "fewest_days": FEWEST_DAYS, "alpha": ALPHA},
            "pairs",
        )
    unknown = [p for p in rest if p["n_days"] is None]
    if unknown:
        yield Sentence(
            "undecided",
            f"{where}: {many(len(unknown), 'comparison')} ({_partners(unknown)}) cannot be tested by days, as a decision day is missing.",
            "care",
            {"without_days": len(unknown)},
            "pairs",
        )


def _untestable(p: Row) -> bool:
    return p["n_discordant"] == 0 or p["n_days"] is None or p["n_days"] < FEWEST_DAYS


def _partners(some: Sequence[Row]) -> str:
    """The methods that the reference is compared with, the first by name."""
    others = list(dict.fromkeys(p["b"] for p in some))
    more = f" and {len(others) - NAMED_AT_MOST} more" if len(others) > NAMED_AT_MOST else ""
    return ", ".join(others[:NAMED_AT_MOST]) + more


def _against(alike: Sequence[Row]) -> str:
    """As ``tiem and cot are``: the methods of ``alike`` pairs."""
    others = list(dict.fromkeys(p["b"] for p in alike))
    shown = (
        others if len(others) <= NAMED_AT_MOST else [*others[:NAMED_AT_MOST], f"{len(others) - NAMED_AT_MOST} others"]
    )
    return (
        f"{alike[0]['a']} and each of {', '.join(shown)} are"
        if len(others) > 1
        else f"{alike[0]['a']} and {others[0]} are"
    )


def _difference(p: Row) -> str:
    return f"{p.get('name_a', p['a'])} − {p.get('name_b', p['b'])} on {p['benchmark']} {signed(p['diff'])} points{interval(p['ci'])}"
