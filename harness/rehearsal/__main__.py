"""``python -m harness.rehearsal``: the rehearsal endpoint as a server of its own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import threading

from aiohttp import web

from harness.errors import ConfigError
from harness.rehearsal.answerer import VARIANTS
from harness.rehearsal.faults import Faults
from harness.rehearsal.server import ACCEPTED, NAMED, Options, Server

_HOST = "127.0.0.1"
_BACKLOG = 1024


def main() -> int:
    """Serve until a signal, or until stdin ends with ``--exit-with-stdin``. Exit code 2 for a bad option."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.rehearsal",
        description="An OpenAI-compatible endpoint on loopback whose answers are a function of the request. It is not a "
        "language model: it exercises the path, and says nothing about any method.",
    )
    parser.add_argument("--port", type=int, default=0, help="0 picks a free port; the line printed names it")
    parser.add_argument("--rpm", type=float, help="requests a minute, enforced with 429")
    parser.add_argument("--tpm", type=float, help="tokens a minute, enforced with 429")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--fault", help="shares by fault, e.g. 500=0.05,reset=0.02,hang=0.01,429=0.1,malformed=0.1")
    parser.add_argument("--fault-seed", type=int, default=0, help="which requests suffer")
    parser.add_argument("--variant", choices=VARIANTS, default="a", help="answerer for models not named *_b")
    parser.add_argument(
        "--accepts", choices=ACCEPTED, default=ACCEPTED[0], help="best response_format taken, as servers differ in it"
    )
    parser.add_argument("--refusal", type=int, default=500, help="status of the answer to a better one")
    parser.add_argument(
        "--names",
        choices=NAMED,
        default=NAMED[0],
        help="what headers tell of the limits: all, the wait after a 429, none",
    )
    parser.add_argument("--key", help="refuse requests without this bearer key")
    parser.add_argument(
        "--exit-with-stdin", action="store_true", help="end when stdin does: no orphan of a killed parent"
    )
    args = parser.parse_args()
    try:
        faults = Faults.parse(args.fault, args.fault_seed)
    except ConfigError as error:
        parser.error(str(error))
    options = Options(
        args.rpm, args.tpm, args.latency, faults, args.variant, args.key, args.accepts, args.refusal, args.names
    )
    try:
        asyncio.run(_serve(options, args.port, args.exit_with_stdin))
    except OSError as error:
        parser.error(f"--port {args.port}: {error.strerror or error}; choose another, or 0 for a free one")
    return 0


async def _serve(options: Options, port: int, exit_with_stdin: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(Server(options).app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, _HOST, port, backlog=_BACKLOG)
        await site.start()
        bound = runner.addresses[0][1]
        print(f"rehearsal endpoint on http://{_HOST}:{bound}/v1", flush=True)
        if exit_with_stdin:
            threading.Thread(target=_watch_stdin, args=(loop, stop), daemon=True).start()
        await stop.wait()
    finally:
        await runner.cleanup()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    sys.stdin.buffer.read()
    with contextlib.suppress(RuntimeError):  # the loop may have closed meanwhile
        loop.call_soon_threadsafe(stop.set)


if __name__ == "__main__":
    sys.exit(main())
