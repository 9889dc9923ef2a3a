"""``python -m harness.status RUN_DIR``: how a run is doing, from another shell."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import ConfigError, HarnessError
from harness.listing import listing
from harness.progress import COLUMNS, STATUS_FILE, TEXT_COLUMNS, cell_texts, duration
from harness.store import in_use


def read_status(run_dir: Path) -> dict[str, Any]:
    """The status file of ``run_dir``.

    Raises:
        ConfigError: there is none, or it is damaged.
    """
    path = run_dir / STATUS_FILE
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: not there; is {run_dir} the run.dir of a run that has started?") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    return found


def alive_text(status: Mapping[str, Any], alive: bool, now: datetime) -> str:
    """Whether the run goes on, in a sentence. ``alive`` is what the system says of its lock."""
    age = duration(max(0.0, (now - datetime.fromisoformat(status["updated_at"])).total_seconds()))
    if status["ended_at"]:
        return f"{'a run is starting or closing; the last one ' if alive else ''}ended at {status['ended_at']}"
    if alive:
        return f"running (process {status['pid']}), as of {age} ago"
    return f"no longer alive: it stopped without an end, last heard of {age} ago; run the same command again to resume"


def status_text(status: Mapping[str, Any], alive: bool, now: datetime) -> str:
    """The whole status."""
    total = status["total"]
    lines = [
        alive_text(status, alive, now),
        listing(COLUMNS, [cell_texts(name, cell) for name, cell in status["cells"].items()], left=TEXT_COLUMNS),
        f"forecasts {total['done']}/{total['forecasts']}, {total['a_second'] or 0:.1f}/s"
        + (f", about {duration(total['left_s'])} left" if total["left_s"] and alive else "")
        + (f", ${total['cost_usd']:.4f} paid in this run" if total["cost_usd"] is not None else ", cost not known"),
    ]
    for name, stats in status["endpoints"].items():
        waits = f"{stats['waiting']} waiting on {stats['waiting_on']}" if stats["waiting_on"] else "none waiting"
        lines.append(
            f"endpoint {name}: {stats['in_flight']} in flight, {waits}, {stats['retrying']} retrying, {stats['done']} done "
            f"({stats['cache_hits']} from the store), {stats['retries']} retries, {stats['n429']} × 429, "
            f"{stats['unanswered']} without an answer"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; 0, or 2 for bad usage."""
    parser = argparse.ArgumentParser(prog="python -m harness.status", description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--json", action="store_true", help="the status file itself, with `alive`")
    args = parser.parse_args(arguments)
    try:
        status, alive = read_status(args.run_dir), in_use(args.run_dir)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        json.dumps({"alive": alive, **status}, indent=2) if args.json else status_text(status, alive, datetime.now(UTC))
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
