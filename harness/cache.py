"""``python -m harness.cache``: look at the stored replies of a run, check them, copy them out, remove some.

    python -m harness.cache stats  RUN_DIR      what is stored
    python -m harness.cache verify RUN_DIR      every row against its hash; exit code 1 if one is damaged
    python -m harness.cache export RUN_DIR --to replies.parquet     (or .jsonl)
    python -m harness.cache prune  RUN_DIR --unreferenced --before 2026-01-31 --yes

RUN_DIR may also be a cache directory, or one store.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sqlite3
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.errors import ConfigError, HarnessError
from harness.ledger import ledger, read_payments, usd
from harness.listing import listing
from harness.packing import Unpack, unpacker
from harness.replies import STORES, open_store
from harness.store import RunDirectory

COLUMNS = ("request_sha256", "endpoint", "created_at", "request", "reply", "answered_by")
_SCHEMA = pa.schema([(name, pa.string()) for name in COLUMNS])
_BATCH = 1000
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Damage:
    """One row that cannot be trusted."""

    store: Path
    request_sha256: str
    what: str


def stores_in(path: Path) -> list[Path]:
    """The stores of a run directory, of a cache directory, or ``path`` itself.

    Raises:
        ConfigError: there is none.
    """
    if path.is_file():
        return [path]
    for folder in (path / "cache", path):
        found = sorted(folder.glob(STORES))
        if found:
            return found
    raise ConfigError(f"{path}: no replies-*.sqlite there; give a run directory, its cache/, or one store")


def stats(stores: Sequence[Path]) -> str:
    """What is stored, a row a store."""
    rows: list[list[str] | None] = []
    for store in stores:
        with closing(open_store(store)) as db:
            replies, aliases, first, last = db.execute(
                "SELECT count(reply), count(answered_by), min(created_at), max(created_at) FROM replies"
            ).fetchone()
        paid = ledger(read_payments(store.parent, store.name)).total
        size = f"{store.stat().st_size / 1e6:,.1f} MB"
        cells = [f"{replies:,}", f"{aliases:,}", size, first or "-", last or "-", f"{paid.calls:,}", usd(paid.cost_usd)]
        rows.append([store.name, *cells])
    return listing(("store", "replies", "fresh tries", "size", "first", "last", "paid calls", "paid"), rows)


def verify(store: Path) -> Iterator[Damage]:
    """Every damaged row: unreadable, not the request of its key, not a reply, or pointing nowhere.

    Raises:
        DataError: the file cannot be read as a store at all.
    """
    with closing(open_store(store)) as db:
        try:
            for (line,) in db.execute("PRAGMA integrity_check"):
                if line != "ok":
                    yield Damage(store, "-", f"SQLite: {line}")
            known = {key for (key,) in db.execute("SELECT request_sha256 FROM replies")}
            unpack = unpacker(db)
            for row in db.execute(f"SELECT {', '.join(COLUMNS)} FROM replies ORDER BY rowid"):
                what = _wrong_with(row, known, unpack)
                if what is not None:
                    yield Damage(store, str(row[0]), what)
        except sqlite3.DatabaseError as error:
            yield Damage(store, "-", f"SQLite: {error}; rows from here on cannot be read")


def _wrong_with(row: tuple[Any, ...], known: set[str], unpack: Unpack) -> str | None:
    key, _, _, request, reply, answered_by = row
    try:
        text = unpack(request)
        answer = None if reply is None else unpack(reply)
    except (zlib.error, UnicodeDecodeError, TypeError) as error:
        return f"cannot be unpacked ({error})"
    if hashlib.sha256(text.encode()).hexdigest() != key:
        return "the request does not have the hash it is stored under"
    if (answer is None) == (answered_by is None):
        return "must hold either a reply or the key of the one that answers it"
    if answer is None:
        return None if answered_by in known else f"answered by {answered_by}, which is not there"
    try:
        choices = json.loads(answer)["choices"]
        choices[0]["message"]
    except (ValueError, KeyError, IndexError, TypeError):
        return "the reply is not a chat completion"
    return None


def export(stores: Sequence[Path], to: Path) -> int:
    """Write all rows to ``to`` (.parquet or .jsonl); how many.

    Raises:
        ConfigError: another kind of file, or not writable.
    """
    if to.suffix not in (".parquet", ".jsonl"):
        raise ConfigError(f"--to {to}: must end in .parquet or .jsonl")
    count = 0
    try:
        with to.open("wb") as file:
            writer = pq.ParquetWriter(file, _SCHEMA, compression="zstd") if to.suffix == ".parquet" else None
            for rows in (batch for store in stores for batch in _batches(store)):
                count += len(rows)
                if writer:
                    writer.write_table(pa.Table.from_pylist(rows, _SCHEMA))
                else:
                    file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
            if writer:
                writer.close()
    except OSError as error:
        raise ConfigError(f"--to {to}: cannot be written ({error.strerror})") from None
    return count


def _batches(store: Path) -> Iterator[list[dict[str, str | None]]]:
    with closing(open_store(store)) as db:
        unpack = unpacker(db)
        cursor = db.execute(f"SELECT {', '.join(COLUMNS)} FROM replies ORDER BY rowid")
        while rows := cursor.fetchmany(_BATCH):
            yield [
                {
                    **dict(zip(COLUMNS, row, strict=True)),
                    "request": unpack(row[3]),
                    "reply": unpack(row[4]) if row[4] else None,
                }
                for row in rows
            ]


def referenced(run_dir: Path) -> set[str]:
    """Keys that calls on file refer to.

    Raises:
        ConfigError: no call is on file, so nothing says what is referenced.
    """
    keys: set[str] = set()
    for path in [*run_dir.glob("*/*/parts/calls-*.parquet"), *run_dir.glob("*/*/calls.parquet")]:
        keys |= set(pc.unique(pq.read_table(path, columns=["request_sha256"])["request_sha256"]).to_pylist())
    if not keys:
        raise ConfigError(f"{run_dir}: no calls.parquet there; --unreferenced needs the whole run directory")
    return keys


def doomed(store: Path, keep: set[str] | None, before: date | None) -> list[str]:
    """Keys of the rows to remove: not in ``keep`` (None: all are) and older than ``before`` (None: whatever their age).

    A row whose answer goes, goes too.
    """
    with closing(open_store(store)) as db:
        rows = db.execute("SELECT request_sha256, created_at, answered_by FROM replies").fetchall()
    gone = {
        key
        for key, created, _ in rows
        if (keep is None or key not in keep) and (before is None or str(created) < before.isoformat())
    }
    gone |= {key for key, _, answered_by in rows if answered_by in gone}
    return sorted(gone)


def remove(store: Path, keys: Sequence[str]) -> None:
    """Remove rows and give the space back. What was paid for them stays in the ledger."""
    with closing(sqlite3.connect(store)) as db:
        with db:
            db.executemany("DELETE FROM replies WHERE request_sha256 = ?", [(key,) for key in keys])
        db.execute("VACUUM")


def main(arguments: Sequence[str]) -> int:
    """Run the command line; 0, 1 if a row is damaged, 2 for bad usage."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.cache", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("stats", "verify", "export", "prune"))
    parser.add_argument("path", type=Path, metavar="RUN_DIR")
    parser.add_argument("--to", type=Path, metavar="FILE", help="export: a .parquet or .jsonl file")
    parser.add_argument("--unreferenced", action="store_true", help="prune: replies that no call on file refers to")
    parser.add_argument(
        "--before", type=date.fromisoformat, metavar="YYYY-MM-DD", help="prune: replies older than that"
    )
    parser.add_argument("--yes", action="store_true", help="prune: do it")
    args = parser.parse_args(arguments)
    try:
        stores = stores_in(args.path)
        if args.command == "stats":
            print(stats(stores))
        elif args.command == "verify":
            return _tell_damage(stores)
        elif args.command == "export":
            if args.to is None:
                raise ConfigError("export needs --to FILE.parquet or FILE.jsonl")
            print(f"{export(stores, args.to):,} rows written to {args.to}")
        else:
            _prune(args, stores)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _tell_damage(stores: Sequence[Path]) -> int:
    found = [damage for store in stores for damage in verify(store)]
    for damage in found[:_SHOWN]:
        print(f"damaged: {damage.store.name} {damage.request_sha256}: {damage.what}")
    if len(found) > _SHOWN:
        print(f"... and {len(found) - _SHOWN} more")
    if found:
        print(
            f"{len(found)} damaged. What to do: copy the store away and remove these rows with sqlite3, or delete the store; "
            "what is missing is asked, and paid, again"
        )
        return 1
    print(f"ok: every row of {', '.join(store.name for store in stores)}")
    return 0


def _prune(args: argparse.Namespace, stores: Sequence[Path]) -> None:
    if not args.unreferenced and args.before is None:
        raise ConfigError("prune needs --unreferenced, --before YYYY-MM-DD, or both")
    if args.unreferenced and not (args.path / "cells").is_dir():
        raise ConfigError(f"{args.path}: --unreferenced needs the run directory, to see what is referenced")
    home = RunDirectory(stores[0].parent.parent)
    if (home.path / ".lock").exists():
        home.lock()  # no run may start meanwhile
    keep = referenced(args.path) if args.unreferenced else None
    for store in stores:
        keys = doomed(store, keep, args.before)
        done = args.yes or (
            bool(keys) and sys.stdin.isatty() and input(f"remove {len(keys):,} of {store}? [y/N] ") == "y"
        )
        if done:
            remove(store, keys)
        print(f"{store.name}: {len(keys):,} {'removed' if done else 'to remove; nothing was done, add --yes'}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
