"""Templates to text: the page and its Markdown twin."""

from __future__ import annotations

import base64
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.tables import escape_markdown

SCRIPTS = ("tables.js", "cases.js", "timeline.js", "prompt.js", "case.js", "app.js")
"""In the order in which they need each other."""


def html(context: dict[str, Any]) -> str:
    """The page: one file, no request to anywhere; every value escaped, styles and scripts of our own put in as they are."""
    return _environment(autoescape=True).get_template("report.html.j2").render(context, scripts=SCRIPTS)


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
    env.filters["source"] = lambda name: Markup(_source(env, name))
    env.filters["md"] = escape_markdown
    env.filters["base64"] = lambda data: base64.b64encode(data).decode("ascii")
    return env


def _source(env: Environment, name: str) -> str:
    """The text of a file beside the templates."""
    assert env.loader is not None
    return env.loader.get_source(env, name)[0]
