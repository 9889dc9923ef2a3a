"""Which exchange a stock trades on, and so which local time its stamps are in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.params import CaseFiles
from harness.clock import exchange_sessions
from harness.errors import ClockError, ConfigError

CALENDARS: Mapping[str, str] = {"CN": "XSHG", "US": "XNYS"}
"""Exchange calendar of a market (XSHG and XSHE keep the same sessions)."""

_SUFFIXES: Mapping[str, str] = {"SH": "CN", "SZ": "CN", "BJ": "CN", "US": "US"}

_ANY_YEAR = 2020  # of a calendar that is only asked for its time zone


@dataclass(frozen=True)
class Markets:
    """The markets a set of cases knows: the usual two and the benchmark's own."""

    default: str
    calendars: Mapping[str, str]

    def of_stock(self, stock_id: str, stated: Mapping[str, str]) -> str:
        """Market of a stock: ``stated`` for it, else by its suffix (``.SH .SZ .BJ .US``), else the benchmark's."""
        by_suffix = _SUFFIXES.get(stock_id.rpartition(".")[2], self.default)
        return stated.get(stock_id, by_suffix)

    def tz(self, market: str) -> str:
        """IANA time zone of ``market``'s exchange."""
        return exchange_sessions(self.calendars[market], _ANY_YEAR, _ANY_YEAR).tz


def markets_of(files: CaseFiles, key: str) -> Markets:
    """The markets for the cases of ``files``; ``key`` is their path in the configuration.

    Raises:
        ConfigError: a market without a calendar, or an unknown calendar.
    """
    calendar = files.calendar or CALENDARS.get(files.market)
    if calendar is None:
        known = ", ".join(sorted(CALENDARS))
        raise ConfigError(
            f"{key}.market = {files.market!r}: unknown market; use one of {known}, or name its exchange in {key}.calendar"
        )
    markets = Markets(files.market, {**CALENDARS, files.market: calendar})
    try:
        markets.tz(files.market)
    except ClockError as error:
        raise ConfigError(f"{key}.calendar = {calendar!r}: {error}") from None
    return markets
