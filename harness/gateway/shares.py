"""An endpoint's limits divided among the gateways of one Ray cluster: every session has its own, the provider counts them as one.

A gateway holds a share of the limits and departs by it alone, so a departure asks nobody. Twice a second it says what it could
use and is told its share: what is wanted is divided max-min fair, and what one gives up goes to another only once the former
has confirmed it. So the shares never add up to more than the whole. A share is a lease: whoever cannot renew it stops, and is
forgotten a little later.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from harness.gateway.limits import Limiter
from harness.gateway.pace import Clock

log = logging.getLogger(__name__)
PERIOD_S = 0.5
_SOON_S, _CHANGE = 0.1, 0.05
"""What has changed so much is confirmed, or asked for again, so soon: what is given up lies idle until then."""
LEASE_S = 10.0

Renew = Callable[[float, float], Awaitable[float]]
"""(share held, part of the limits that could be used) → the share from now on."""


class NotRenewed(Exception):
    """Whoever divides the limits could not be asked; the text says why."""


@dataclass(slots=True)
class _Seat:
    """One gateway: the part it could use, the most it may believe to hold, and until when."""

    wanted: float
    promised: float
    until: float


class Shares:
    """Divides the limits of any number of places, each among the gateways that use it."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._places: dict[str, dict[str, _Seat]] = {}
        self._inherited: dict[str, float] = {}
        """Places that had shares before us: until when those who hold one may not have told us."""

    async def renew(self, place: str, member: str, held: float, wanted: float) -> float:
        """The share of ``member``, from 0 to 1, from the moment it hears of it and for ``LEASE_S`` after it asked.

        Args:
            place: what the limits are for.
            member: name of a gateway that uses them.
            held: its share until now. One that is new to us may hold one all the same: it had it from our predecessor.
            wanted: the part of the limits that it could use.
        """
        now = self._clock.now()
        if held > 0 and place not in self._places:
            self._inherited[place] = now + LEASE_S
        seats = {name: seat for name, seat in self._places.get(place, {}).items() if seat.until > now}
        self._places[place] = seats
        seats[member] = seat = _Seat(wanted, held, now + LEASE_S)
        fair = divided({name: other.wanted for name, other in seats.items()})[member]
        free = 1 - sum(other.promised for other in seats.values() if other is not seat)
        most = held if now < self._inherited.get(place, now) else 1.0
        share = max(0.0, min(fair, free, most))
        seat.promised = max(held, share)
        return share


def divided(wanted: Mapping[str, float]) -> dict[str, float]:
    """The whole (1) divided max-min fair: nobody gets more than it wants while another lacks; the rest in equal parts."""
    shares: dict[str, float] = {}
    left = 1.0
    for n, name in enumerate(sorted(wanted, key=wanted.__getitem__)):
        shares[name] = min(wanted[name], left / (len(wanted) - n))
        left -= shares[name]
    return {name: share + left / len(shares) for name, share in shares.items()}


async def hold_share(limiter: Limiter, renew: Renew, clock: Clock) -> None:
    """Keep ``limiter`` to its share; runs until it is cancelled."""
    while True:
        asked, held = clock.now(), limiter.held
        try:
            share = await renew(max(held, limiter.occupied), limiter.appetite())
        except NotRenewed as error:
            log.warning("the limits cannot be divided now, trying again: %s", error)
        else:
            limiter.share(share, asked + LEASE_S)
        lately = abs(limiter.held - held) > _CHANGE or limiter.held < _CHANGE
        await clock.sleep(_SOON_S if lately else PERIOD_S)
