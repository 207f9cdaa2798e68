"""`python -m synth.simulator SETTINGS.json`: serve until a signal to end; the port is printed once it listens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

from aiohttp import web
from pydantic import TypeAdapter, ValidationError

from synth.errors import SynthError
from synth.simulator.server import Simulator
from synth.simulator.settings import SimulatorSettings

WITH_PARENT = "--with-parent"


async def serve(settings: SimulatorSettings, with_parent: bool) -> None:
    """Until SIGTERM, SIGINT, or, with_parent, until standard input ends: so no simulator outlives who started it."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    # A client that gives up ends its handler, as with vLLM: or hangs would be counted as in flight for ever.
    runner = web.AppRunner(
        Simulator(settings).application(), handler_cancellation=True, shutdown_timeout=0.5, access_log=None
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", settings.port, backlog=4096)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        if with_parent:
            reader = asyncio.StreamReader()
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
            watch = asyncio.create_task(_until_end(reader, ended))
        await ended.wait()
        if with_parent:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
    finally:
        await runner.cleanup()


async def _until_end(reader: asyncio.StreamReader, ended: asyncio.Event) -> None:
    while await reader.read(4096):
        pass
    ended.set()


def main(arguments: list[str]) -> int:
    paths = [argument for argument in arguments if argument != WITH_PARENT]
    if len(paths) != 1:
        print(f"usage: python -m synth.simulator [{WITH_PARENT}] SETTINGS.json", file=sys.stderr)
        return 2
    try:
        settings = TypeAdapter(SimulatorSettings).validate_python(json.loads(Path(paths[0]).read_text()))
        asyncio.run(serve(settings, WITH_PARENT in arguments))
    except ValidationError as error:
        first = error.errors()[0]
        print(f"{paths[0]}: {'.'.join(map(str, first['loc']))}: {first['msg']}", file=sys.stderr)
        return 2
    except (OSError, ValueError, SynthError) as error:
        print(f"{paths[0]}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
