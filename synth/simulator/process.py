"""A simulator in a process of its own, for tests, benchmarks and rehearsals of a recipe."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from synth.errors import SynthError
from synth.simulator.settings import SimulatorSettings

STOP_SECONDS: Final = 5.0


class SimulatorProcess:
    """`with SimulatorProcess(settings) as simulator:` or `async with`. It ends with the block, or with this process.

    url: where it is asked. stats(): what it saw; see Simulator.stats. Raises SynthError where it does not start.
    """

    def __init__(self, settings: SimulatorSettings | None = None) -> None:
        self._settings = settings or SimulatorSettings()
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Returns once it listens."""
        # A file, not a pipe that nobody reads and that would stop the server once it is full.
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
            path = Path(folder) / "settings.json"
            path.write_text(json.dumps(self._settings.plain()))
            root = str(Path(__file__).resolve().parents[2])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "synth.simulator", "--with-parent", str(path)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).rstrip(":")},
            )  # fmt: skip
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if not line.strip().isdigit():
                self.stop()
                errors.seek(0)
                told = errors.read().strip().splitlines()
                raise SynthError(f"simulator: did not start: {told[-1] if told else 'it ended at once'}")
        self.port = int(line)

    def stop(self) -> None:
        """Ends it, by force after a while; allowed twice."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/stats", timeout=30) as response:
            told: dict[str, Any] = json.load(response)
        return told

    def __enter__(self) -> SimulatorProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> SimulatorProcess:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)
