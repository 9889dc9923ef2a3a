"""Server-side limits: token buckets that hold one second's worth, and the headers real providers send with them."""

from __future__ import annotations

from dataclasses import dataclass


class Bucket:
    """Refills continuously at ``per_minute``; holds one second of it, at least one unit."""

    def __init__(self, per_minute: float, now: float) -> None:
        self.per_minute = per_minute
        self.capacity = max(1.0, per_minute / 60)
        self.level = self.capacity
        self._at = now

    def refill(self, now: float) -> None:
        self.level = min(self.capacity, self.level + (now - self._at) * self.per_minute / 60)
        self._at = now

    def lacking(self, cost: float) -> float:
        """Seconds until ``cost`` is there; one above the capacity goes when the bucket is full, and leaves a debt."""
        return max(0.0, (min(cost, self.capacity) - self.level) * 60 / self.per_minute)

    def until_full(self) -> float:
        return (self.capacity - self.level) * 60 / self.per_minute


@dataclass(frozen=True, slots=True)
class Verdict:
    """``wait_s`` is 0 if the request may pass."""

    wait_s: float
    headers: dict[str, str]


class Limits:
    """Requests and tokens a minute of one kind of call; None means unlimited."""

    def __init__(self, rpm: float | None, tpm: float | None, now: float) -> None:
        self._buckets = {
            name: Bucket(limit, now) for name, limit in (("requests", rpm), ("tokens", tpm)) if limit is not None
        }

    def admit(self, tokens: int, now: float) -> Verdict:
        """Charge one request of ``tokens`` if every bucket has it; charge nothing otherwise."""
        costs = {"requests": 1, "tokens": tokens}
        for bucket in self._buckets.values():
            bucket.refill(now)
        wait = max((bucket.lacking(costs[name]) for name, bucket in self._buckets.items()), default=0.0)
        headers: dict[str, str] = {}
        for name, bucket in self._buckets.items():
            if wait == 0:
                bucket.level -= costs[name]
            headers[f"x-ratelimit-limit-{name}"] = f"{bucket.per_minute:g}"
            headers[f"x-ratelimit-remaining-{name}"] = f"{max(0, int(bucket.level))}"
            headers[f"x-ratelimit-reset-{name}"] = f"{bucket.until_full():.3f}s"
        return Verdict(wait, headers)
