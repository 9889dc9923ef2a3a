"""What a benchmark's YAML may say. Unknown keys and wrong values are refused with their full path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from harness.clock import Convention
from harness.errors import ConfigError


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, list | tuple) else [value]


def _in_brackets(value: object) -> object:
    """One finding is a list of one: two ways to write the same would be two cells."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(value)
    example = value if isinstance(value, str) and value.strip() else "focal_repeated"
    raise PydanticCustomError("no_list", f"write findings in brackets, 'benchmark.exclude=[{example}]', or [] for none")


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

Paths = Annotated[tuple[_Text | None, ...], BeforeValidator(_as_list), Field(min_length=1)]
"""Paths below the root; the first that exists is taken. A null at the end means: go on without such a file."""


class CaseFiles(BaseModel):
    """Where a set of cases comes from and how its times are to be read.

    Attributes:
        name: as in cells and reports: letters, digits, ``_ . -``.
        market: market of a stock that neither its entry nor its suffix places; ``CN``, ``US``, or any name if
            ``calendar`` is given.
        calendar: name in ``exchange_calendars`` of that market's exchange, null for the usual one.
        convention: when a return starts and becomes known.
        horizon: sessions of the forecast return; a row's ``horizon_days`` wins.
        event: the documents.
        stocks: names and industries; only for ``format: table``, a released event file has them inside.
        prices: price paths (JSON), from which resolve times of suspended stocks are read.
        format: ``released`` (JSON) or ``table`` (CSV, JSONL or Parquet).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(pattern=r"^[\w.-]+$")]
    market: _Text
    calendar: _Text | None = None
    convention: Convention
    horizon: int = Field(ge=1, le=250, strict=True)
    event: Paths = (None,)
    stocks: Paths = (None,)
    prices: Paths = (None,)
    format: Literal["released", "table"] = "released"

    @property
    def pending_allowed(self) -> bool:
        """Whether a catalyst may come without an outcome."""
        return False

    @model_validator(mode="after")
    def _stocks_only_in_tables(self) -> Self:
        if self.format == "released" and self.stocks != (None,):
            raise ValueError("stocks: only for format: table; a released event file lists its stocks itself")
        return self


class ExperienceParameters(CaseFiles):
    """Resolved past cases that a memory may learn from. Paths are below the benchmark's root."""

    catalysts: _Text


class Parameters(CaseFiles):
    """All parameters of ``benchmarks.load``.

    Attributes:
        root: directory of the files; null takes ``$HARNESS_DATA``.
        bundled: a directory that ships inside this package, used unless ``root`` holds one of the files.
        eval: the catalysts to forecast.
        experience: past cases; null, or the empty mapping that ``conf/experience/none.yaml`` composes to, for none.
        drop_copies: remove documents whose body repeats an earlier one of the same stock.
        exclude: findings of the audit whose catalysts and documents are left out (of ``eval`` and its ``event``).
        prospective: catalysts may come without outcome and return, which are not known yet.
        resolve: ``calendar`` computes when an outcome is known; ``released`` believes the file's ``resolve_date``.
    """

    root: _Text | None = None
    bundled: _Text | None = None
    eval: _Text
    experience: Annotated[ExperienceParameters | None, BeforeValidator(lambda value: value or None)] = None
    drop_copies: bool = True
    exclude: Annotated[tuple[_Text, ...], BeforeValidator(_in_brackets)] = ()
    prospective: bool = False
    resolve: Literal["calendar", "released"] = "calendar"

    @property
    def pending_allowed(self) -> bool:
        """Whether a catalyst may come without an outcome."""
        return self.prospective


def parse(values: Mapping[str, Any]) -> Parameters:
    """Check the values of a benchmark's YAML.

    Raises:
        ConfigError: every unknown key and wrong value, each with its path.
    """
    try:
        return Parameters.model_validate(values)
    except ValidationError as error:
        raise ConfigError(
            "\n".join(_explain(e["loc"], e["type"], e["msg"], e["input"]) for e in error.errors())
        ) from None


def _explain(loc: tuple[int | str, ...], kind: str, message: str, value: object) -> str:
    path = ".".join(["benchmark", *map(str, loc)])
    if kind == "missing":
        return f"{path}: missing; set it in conf/benchmark/*.yaml or on the command line"
    if kind == "extra_forbidden":
        model = ExperienceParameters if loc[0] == "experience" and len(loc) > 1 else Parameters
        near = get_close_matches(str(loc[-1]), model.model_fields, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(sorted(model.model_fields))}"
        return f"{path}: unknown key; {hint}"
    if kind == "value_error":  # of a whole model: its value would be the whole configuration
        return f"{path}.{message.removeprefix('Value error, ')}"
    return f"{path} = {value!r}: {message}"
