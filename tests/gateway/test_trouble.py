"""Faults and endpoints that are down, through the real sender, in virtual time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from harness.gateway.limits import Limiter, Need
from harness.gateway.retry import Failure
from harness.gateway.sender import Sender
from harness.gateway.settings import Endpoint
from harness.records import Status
from tests.gateway.virtual import CLOCK, Bucket, World, now, run_virtually

RPM = 1200


def faults(rng: random.Random) -> str | None:
    draw = rng.random()
    return "500" if draw < 0.05 else "reset" if draw < 0.07 else "hang" if draw < 0.08 else None


@pytest.mark.parametrize("latency", [0.3, 1.0, 3.0])
def test_faults_lose_no_call_and_little_time(latency: float) -> None:
    """5 % of 500s, 2 % of resets and 1 % of hangs of two minutes, with default settings and the limit set."""
    rng = random.Random(5)
    at = World(Bucket(RPM), lambda: latency * rng.uniform(0.7, 1.5), fault=lambda: faults(rng))
    done = at.run(2000, rpm=RPM)
    assert not [outcome for _, outcome in done if isinstance(outcome, Failure)]
    assert sorted(at.answered) == list(range(2000)), "every call is answered once"
    assert not at.refused
    sends = len(at.arrivals)
    assert at.arrivals[-1] - at.arrivals[0] <= 1.15 * sends / (RPM / 60)


def test_the_output_of_those_that_wait_is_estimated_when_they_leave() -> None:
    """All came before the first reply, when 1,500 tokens had to be feared; replies take 90."""
    endpoint = Endpoint(name="e", model="m", tpm=150_000, max_in_flight=128)
    left: list[float] = []

    async def main() -> None:
        sender = Sender(endpoint, Limiter.of([endpoint], CLOCK), CLOCK, random.Random(0))

        async def exchange() -> tuple[int, dict[str, Any]]:
            left.append(now())
            await asyncio.sleep(1)
            return 0, {"usage": {"prompt_tokens": 340, "completion_tokens": 90}}

        async def store(_: int, reply: dict[str, Any]) -> None:
            pass

        await asyncio.gather(*(sender.send("forecast", Need(340, 1500), exchange, store) for _ in range(128)))

    run_virtually(main())
    assert 128 * 430 / left[-1] * 60 >= 0.9 * 150_000


class Outage:
    """Down from one time to another."""

    def __init__(self, kind: str, start: float, end: float) -> None:
        self.kind, self.start, self.end = kind, start, end

    def __call__(self) -> str | None:
        return self.kind if self.start <= now() < self.end else None


@pytest.mark.parametrize("kind", ["refused", "reset", "500"])
def test_an_outage_costs_no_call_its_retries(kind: str) -> None:
    outage = Outage(kind, 10, 100)
    at = World(None, lambda: 1.0, fault=outage)
    done = at.run(3000, rpm=6000, max_in_flight=64)
    assert not [outcome for _, outcome in done if isinstance(outcome, Failure)]
    assert sorted(at.answered) == list(range(3000))
    during = [t for t in at.arrivals if 13 < t < 100]
    assert len(during) <= 12, "one request at a time tries"
    assert min(t for t in at.arrivals if t > 100) < 111
    assert len([t for t in at.arrivals if 112 < t < 114]) > 30, "then it goes on as before"


def test_the_user_is_told() -> None:
    at = World(None, lambda: 1.0, fault=Outage("refused", 5, 60))
    told: list[Any] = []

    async def look() -> None:
        for when in (4, 20, 110):
            await asyncio.sleep(when - now())
            told.append((at.sender.limiter.waiting_on, at.sender.limiter.trouble()))

    at.run(4000, meanwhile=look(), rpm=1500)
    assert told[0][1] is None
    assert told[1][0] == "down"
    assert "down since" in told[1][1]
    assert "trying" in told[1][1]
    assert "nothing answers" in told[1][1]
    assert told[2][1] is None


@pytest.mark.parametrize(("kind", "after", "at_most_s"), [("refused", 0, 65), ("500", 0, 400), ("refused", 10, 400)])
def test_an_endpoint_that_stays_down_is_given_up(kind: str, after: float, at_most_s: float) -> None:
    """Sooner if nothing ever answered: the URL is probably wrong."""
    at = World(None, lambda: 1.0, fault=Outage(kind, after, 1e9))
    done = at.run(1000, rpm=1200)
    failures = [outcome for _, outcome in done if isinstance(outcome, Failure)]
    assert len(failures) + len(at.answered) == 1000
    assert {failure.status for failure in failures} == {Status.PROVIDER}
    assert all(failure.fatal for failure in failures[10:])
    assert "given up" in failures[-1].reason
    assert at.arrivals[-1] < after + at_most_s
    assert len(at.arrivals) - len(at.answered) < 200


def test_patience_is_a_setting() -> None:
    at = World(None, lambda: 1.0, fault=Outage("500", 5, 1e9))
    done = at.run(500, rpm=1200, outage_s=20)
    assert isinstance(done[-1][1], Failure)
    assert at.arrivals[-1] < 60


def test_all_calls_that_are_broken_do_not_look_like_an_outage() -> None:
    """Random failures open no breaker: nobody waits for them but the calls they hit."""
    rng = random.Random(1)
    at = World(None, lambda: 1.0, fault=lambda: "500" if rng.random() < 0.08 else None)
    at.run(2000, max_in_flight=64)
    assert at.arrivals[-1] < 1.25 * len(at.arrivals) / 64


@pytest.mark.parametrize("kind", ["500", "hang"])
def test_a_server_that_breaks_on_one_request_is_not_down(kind: str) -> None:
    """That call ends after its retries, although nothing else is under way to prove that the server lives."""
    at = World(None, lambda: 1.0)
    at.fault = lambda: kind if at.number == 199 else None
    done = at.run(200, max_in_flight=64)
    (failure,) = (outcome for _, outcome in done if isinstance(outcome, Failure))
    assert not failure.fatal
    assert len(at.arrivals) == 199 + 6
