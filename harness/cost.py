"""``python -m harness.cost RUN_DIR``: what a run has cost, and what it would cost at other prices. No call is made."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from harness.config import explain
from harness.errors import ConfigError, HarnessError
from harness.gateway.settings import Prices
from harness.ledger import Paid, ledger, ledger_text, read_payments
from harness.records import EMBED

CONF = Path(__file__).resolve().parent.parent / "conf"


def prices_in(path: Path) -> dict[str, Prices]:
    """Prices by backbone in a YAML: a backbone's (``name`` and ``prices``), an embedder's, or ``{backbone: prices, ...}``.

    Raises:
        ConfigError: no such file, or no such content.
    """
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as YAML ({error})") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: must be a mapping: a backbone's YAML, or prices by backbone")
    if isinstance(content.get("endpoint"), dict):
        content = content["endpoint"]
    table = {content["name"]: content.get("prices") or {}} if "name" in content else content
    found = {}
    for name, prices in table.items():
        try:
            found[str(name)] = Prices.model_validate(prices)
        except ValidationError as error:
            raise ConfigError(f"{path}: {explain(error, str(name))}") from None
    return found


def shipped_prices() -> dict[str, Prices]:
    """The prices in the YAMLs of ``conf/backbone`` and ``conf/embedder``."""
    files = [*sorted((CONF / "backbone").glob("*.yaml")), *sorted((CONF / "embedder").glob("*.yaml"))]
    with_prices = [path for path in files if "prices:" in path.read_text("utf-8")]
    return {name: prices for path in with_prices for name, prices in prices_in(path).items()}


def pricing(
    table: Mapping[str, Prices], *, all_at: Prices | None = None, on: date | None = None, batch: bool = False
) -> Callable[[Paid], float | None]:
    """What a payment costs at the prices in ``table``.

    Args:
        table: prices by backbone; a backbone that is not in it has no known cost.
        all_at: prices for every backbone's chat calls, instead.
        on: the day whose prices hold; None for the day of each payment.
        batch: with the discount of the batch API.
    """

    def cost(paid: Paid) -> float | None:
        payment = paid.payment
        prices = table.get(paid.backbone) if all_at is None or payment.purpose == EMBED else all_at
        if prices is None:
            return None
        price = prices.at(on or datetime.fromisoformat(payment.paid_at).date())
        if payment.purpose == EMBED:
            usd = price.embedding_cost(payment.prompt_tokens)
        else:
            usd = price.cost(payment.prompt_tokens, payment.cached_tokens, payment.completion_tokens)
        return usd if usd is None or not batch else usd * (1 - (price.batch_discount or 0.0))

    return cost


def main(arguments: list[str]) -> int:
    """Run the command line; 0, or 2 for bad usage."""
    parser = argparse.ArgumentParser(prog="python -m harness.cost", description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument(
        "at", nargs="?", metavar="backbone=NAME", help="price all calls as conf/backbone/NAME.yaml says"
    )
    parser.add_argument("--prices", type=Path, help="YAML with prices by backbone, or one backbone's YAML")
    parser.add_argument("--paid", action="store_true", help="at the prices at which they were paid")
    parser.add_argument(
        "--on", type=date.fromisoformat, metavar="YYYY-MM-DD", help="prices of that day, not of each payment's"
    )
    parser.add_argument("--batch", action="store_true", help="with the discount of the batch API")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the ledger there")
    args = parser.parse_args(arguments)
    try:
        title, cost = _chosen(args)
        if not (args.run_dir / "cache").is_dir():
            raise ConfigError(f"{args.run_dir}: not a run directory (it has no cache/)")
        paid = read_payments(args.run_dir / "cache")
        found = ledger(paid, cost)
        print(ledger_text(found, f"{args.run_dir}: {title}"))
        unpriced = sorted({one.backbone for one in paid if cost is not None and cost(one) is None})
        if unpriced:
            theirs = f"conf/backbone/{args.at.removeprefix('backbone=')}.yaml" if args.at else "its YAML"
            print(f"no price for calls to {', '.join(unpriced)}: set prices in {theirs}, or give --prices FILE")
        if args.json:
            args.json.write_text(json.dumps({"prices": title, **found.as_json()}, indent=2), "utf-8")
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _chosen(args: Any) -> tuple[str, Callable[[Paid], float | None] | None]:
    """What the ledger is priced at, in words and as a function."""
    when = f"on {args.on}" if args.on else "on the day of each call"
    if args.paid:
        return "as paid", None
    if args.at is not None:
        key, _, name = args.at.partition("=")
        path = CONF / "backbone" / f"{name}.yaml"
        if key != "backbone" or not path.exists():
            names = ", ".join(sorted(p.stem for p in path.parent.glob("*.yaml")))
            raise ConfigError(f"{args.at!r}: must be backbone=NAME with one of {names}")
        prices = prices_in(path)[name]
        return f"at the prices of {name} {when}", pricing(shipped_prices(), all_at=prices, on=args.on, batch=args.batch)
    table = prices_in(args.prices) if args.prices else shipped_prices()
    source = str(args.prices or CONF)
    return f"at the prices in {source} {when}", pricing(table, on=args.on, batch=args.batch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
