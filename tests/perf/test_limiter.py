"""`make bench`: grants of the limiter, all limits set, against an endpoint that needs them no faster than 2,000 a second."""

from __future__ import annotations

import asyncio
import time

import pytest

from harness.gateway.limits import Limiter, Limits, Need

pytestmark = pytest.mark.perf
GRANTS = 20_000


def test_grants_a_second() -> None:
    """Four queues, 1,000 waiting in each; limits on requests and tokens that are never reached."""

    async def main() -> float:
        limiter = Limiter(Limits(rpm=10**9, tpm=10**13, input_tpm=10**13, output_tpm=10**13), 256)

        async def work(queue: str) -> None:
            for _ in range(GRANTS // 4000):
                async with limiter.permit(Need(900, 100), queue) as permit:
                    await asyncio.sleep(0)
                    limiter.accepted(permit)
                    limiter.correct(permit.need, Need(880, 120))

        started = time.perf_counter()
        await asyncio.gather(*(work(str(n % 4)) for n in range(4000)))
        return GRANTS / (time.perf_counter() - started)

    rate = asyncio.run(main())
    print(f"\n  limiter: {rate:,.0f} grants a second, {rate / 2000:.1f} times what is needed", flush=True)
