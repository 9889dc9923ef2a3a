"""Stability of a skill (paper Eq. 8): whether it holds on other resolved cases than those it comes from."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from pydantic import ConfigDict


class Stability(StrEnum):
    """Label of a skill; ``miss`` retires it."""

    STABLE = "stable"
    UNSTABLE = "unstable"
    UNEVALUABLE = "unevaluable"
    MISS = "miss"


class Verdict(StrEnum):
    """What the model says of a skill on one sampled case."""

    APPLY = "APPLY"
    MISAPPLY = "MISAPPLY"
    SKIP = "SKIP"


STABILITY_WEIGHTS: Mapping[Stability, float] = {
    Stability.STABLE: 1.2,
    Stability.UNSTABLE: 0.7,
    Stability.UNEVALUABLE: 1.0,
    Stability.MISS: 0.0,
}


@dataclass(frozen=True, slots=True)
class StabilityRule:
    """K, K_min, θ_h, θ_l, η and the seed of the sample."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")  # as a knob: a typo is an error
    k: int = 20
    k_min: int = 5
    stable_at: float = 0.7
    miss_at: float = 0.3
    skip_limit: float = 0.7
    seed: int = 42

    def __post_init__(self) -> None:
        if not (0 <= self.miss_at < self.stable_at <= 1 and 0 < self.skip_limit <= 1 and 1 <= self.k_min <= self.k):
            raise ValueError(f"{self}: want 0 <= miss_at < stable_at <= 1, 0 < skip_limit <= 1, 1 <= k_min <= k")


DEFAULT_RULE = StabilityRule()


@dataclass(frozen=True, slots=True)
class StabilityResult:
    """A label and what it rests on.

    Attributes:
        reason: why it is unevaluable, else None.
        apply_rate: applied / (applied + misapplied), None if unevaluable.
        n_apply, n_misapply, n_skip: verdicts on the sample, None if none were asked for or the call failed.
    """

    label: Stability
    reason: str | None = None
    apply_rate: float | None = None
    n_apply: int | None = None
    n_misapply: int | None = None
    n_skip: int | None = None


def eligible(known: Iterable[str], sources: Collection[str]) -> list[str]:
    """Those of the ``known`` case ids that the skill does not come from, in the given order."""
    own = set(sources)
    return [name for name in known if name not in own]


def sample(skill_id: str, train_ids: Sequence[str], rule: StabilityRule = DEFAULT_RULE) -> tuple[str, ...]:
    """``K_eff = min(K, len(train_ids))`` of ``train_ids``, drawn by a generator seeded with the skill's id.

    The order of ``train_ids`` matters. A sample of fewer than ``k_min`` is not worth a call: ``label`` says so.
    """
    skill_seed = int(hashlib.md5(skill_id.encode()).hexdigest()[:8], 16)
    return tuple(random.Random(rule.seed ^ skill_seed).sample(train_ids, min(rule.k, len(train_ids))))


def label(
    sampled: Sequence[str],
    verdicts: Mapping[str, Verdict] | None,
    rule: StabilityRule = DEFAULT_RULE,
) -> StabilityResult:
    """The label that ``verdicts`` on the ``sampled`` cases give (Eq. 8).

    Args:
        sampled: ids asked about.
        verdicts: by id; a missing one is SKIP, one that was not asked for is ignored. None if the call failed.
        rule: thresholds. The first that holds decides: sample too small, call failed, share of skips (all
            of them where nothing is relevant), apply rate.
    """
    k_eff = len(sampled)
    if k_eff < rule.k_min:
        return StabilityResult(Stability.UNEVALUABLE, f"K_eff={k_eff}<{rule.k_min}")
    if verdicts is None:
        return StabilityResult(Stability.UNEVALUABLE, "llm_fail")
    given = [verdicts.get(case_id, Verdict.SKIP) for case_id in sampled]
    applied, misapplied, skipped = (given.count(v) for v in (Verdict.APPLY, Verdict.MISAPPLY, Verdict.SKIP))

    def result(found: Stability, reason: str | None = None, rate: float | None = None) -> StabilityResult:
        return StabilityResult(found, reason, rate, applied, misapplied, skipped)

    if skipped >= k_eff * rule.skip_limit:  # skip_limit <= 1, so "nothing relevant" ends here too
        return result(Stability.UNEVALUABLE, f"skip_too_high({skipped}/{k_eff})")
    rate = applied / (applied + misapplied)
    if rate >= rule.stable_at:
        return result(Stability.STABLE, rate=rate)
    if rate <= rule.miss_at:
        return result(Stability.MISS, rate=rate)
    return result(Stability.UNSTABLE, rate=rate)
