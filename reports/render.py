"""Templates to text: the page and its Markdown twin."""

from __future__ import annotations

import base64
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from reports.tables import escape_markdown


def html(context: dict[str, Any]) -> str:
    """The page: one file, no script, no request to anywhere; every value escaped."""
    return _environment(autoescape=True).get_template("report.html.j2").render(context)


def markdown(context: dict[str, Any]) -> str:
    """The same report as Markdown, tables included."""
    return _environment(autoescape=False).get_template("report.md.j2").render(context)


def page(template: str, context: dict[str, Any]) -> str:
    """A page of HTML that has a template of its own; every value escaped."""
    return _environment(autoescape=True).get_template(template).render(context)


def _environment(*, autoescape: bool) -> Environment:
    env = Environment(
        loader=PackageLoader("reports", "templates"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["md"] = escape_markdown
    env.filters["base64"] = lambda data: base64.b64encode(data).decode("ascii")
    return env
