"""Base of the methods: validated knobs, prompt templates, fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict

from harness.expected import Expected, Survey
from harness.method import Context, Learner
from harness.records import Catalyst, Forecast

PROMPTS = Path(__file__).parent / "prompts"


class BaseMethod(BaseModel):
    """A method's knobs are its fields: an unknown key in YAML or on the command line is an error.

    Class attributes:
        uses_llm: False for methods that make no call.
        uses_embedder: True for methods that call ``ctx.embed``.
        templates: files in ``methods/prompts`` that this method renders; their hashes are part of its identity.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    uses_llm: ClassVar[bool] = True
    uses_embedder: ClassVar[bool] = False
    templates: ClassVar[tuple[str, ...]] = ()

    def fingerprint(self) -> Mapping[str, Any]:
        """Class, knobs and template hashes."""
        return {
            "class": f"{type(self).__module__}.{type(self).__qualname__}",
            "knobs": self.model_dump(mode="json", exclude={"name"}),
            "prompts": {name: template_sha256(name) for name in self.templates},
        }

    def instruction_sha256(self) -> str | None:
        return None

    def chosen(self, cases: Sequence[Catalyst], seed: int) -> Sequence[Catalyst]:
        """All of them."""
        return cases

    async def expected(self, survey: Survey) -> list[Expected] | None:
        """None: an estimate of a method that does not say what it asks would be a guess."""
        return None

    def learner(self) -> Learner | None:
        """None: most methods have no memory."""
        return None

    async def forecast(self, case: Catalyst, ctx: Context) -> Forecast:
        raise NotImplementedError(f"{type(self).__name__} must implement forecast()")


@lru_cache
def _environment() -> Environment:
    # Prompts are plain text for a model, not HTML: nothing is escaped. An undefined name is an error, not "".
    return Environment(
        loader=FileSystemLoader(PROMPTS, encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )


def render(template: str, **values: Any) -> str:
    """Fill ``methods/prompts/<template>``; surrounding white space is stripped."""
    return _environment().get_template(template).render(**values).strip()


@lru_cache
def template_sha256(name: str) -> str:
    """SHA-256 of a template's source."""
    return hashlib.sha256((PROMPTS / name).read_bytes()).hexdigest()
