"""Servers of vLLM that a run starts, keeps alive and ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, TextIO

import aiohttp

from synth.errors import SynthError
from synth.replies import Failure, Reply, TeacherError
from synth.requests import Identity, Request
from synth.teachers.http_teacher import HttpTeacher
from synth.teachers.settings import TeacherSettings
from synth.teachers.vllm_environment import python_of, server_environment
from synth.teachers.vllm_process import ServerProcess

WATCH_SECONDS: Final = 0.5
TELL_SECONDS: Final = 15.0
STARTS_IN_A_ROW: Final = 3
"""A server that dies this often without having answered between is given up: that is no bad luck."""


class ServedTeacher:
    """The teacher of `vllm` settings: `vllm serve`, one process a replica, asked over HTTP.

    A replica that dies is started again at its old address, and its requests go to the others or wait for it. All end
    with close(), and when this process is killed. logs: folder of their logs; None makes one. progress: where waiting
    is told. Raises SynthError from open() where there is no vLLM, too few GPUs, or a server does not start.
    """

    def __init__(
        self, settings: TeacherSettings, *, logs: str | None = None, progress: TextIO | None = sys.stderr
    ) -> None:
        assert settings.vllm is not None
        self._settings, self._vllm = settings, settings.vllm
        self._identity = settings.identity()
        self._logs, self._progress = logs, progress
        self._servers: list[ServerProcess] = []
        self._watches: list[asyncio.Task[None]] = []
        self._given_up: set[ServerProcess] = set()
        self._client: HttpTeacher | None = None
        self._session: aiohttp.ClientSession | None = None

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def capacity(self) -> int:
        return self._settings.max_in_flight

    @property
    def servers(self) -> tuple[ServerProcess, ...]:
        return tuple(self._servers)

    async def open(self) -> None:
        """Start the servers and wait until each answers."""
        try:
            await self._start()
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> None:
        python = await asyncio.get_running_loop().run_in_executor(None, python_of, self._vllm)
        for replica in range(self._vllm.replicas):
            server_environment(self._vllm, replica)  # too few GPUs are told before anything is started
        folder = Path(self._logs or tempfile.mkdtemp(prefix="gristmill-vllm-"))
        folder.mkdir(parents=True, exist_ok=True)
        self._servers = [
            ServerProcess(self._settings, replica, python=python, log=folder / f"server-{replica}.log")
            for replica in range(self._vllm.replicas)
        ]
        self._session = aiohttp.ClientSession()
        self._say(f"starts {len(self._servers)} server(s) of vLLM; their logs: {folder}")
        start = time.monotonic()
        for server in self._servers:
            server.start()
        await self._all_ready(start)
        self._say(f"ready after {time.monotonic() - start:.0f} s")
        # While a server is started again none may be healthy: requests wait as long as a start may take.
        patience = max(self._settings.outage_seconds, self._vllm.start_timeout_seconds)
        patient = dataclasses.replace(self._settings, outage_seconds=patience)
        self._client = HttpTeacher(patient, [server.url for server in self._servers])
        await self._client.open()
        self._watches = [asyncio.create_task(self._keep_alive(server)) for server in self._servers]

    async def close(self) -> None:
        """End the servers and all that they started; requests in flight are given up."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        for part in (self._client, self._session):
            if part is not None:
                await part.close()
        self._client = self._session = None
        loop, servers = asyncio.get_running_loop(), self._servers
        self._servers, self._watches = [], []
        await asyncio.gather(*(loop.run_in_executor(None, server.stop) for server in servers))

    async def generate(self, request: Request) -> Reply:
        """The servers' reply, asked for as HttpTeacher does it."""
        if self._client is None or len(self._given_up) == len(self._servers):
            key = request.key(self._identity)
            raise TeacherError(Failure(key=key, stage="send", error="no server of vLLM is running", attempts=0))
        return await self._client.generate(request)

    async def _all_ready(self, start: float) -> None:
        assert self._session is not None
        tasks = [asyncio.create_task(server.ready(self._session)) for server in self._servers]
        try:
            waiting: set[asyncio.Task[None]] = set(tasks)
            while waiting:
                ended, waiting = await asyncio.wait(waiting, timeout=TELL_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
                for task in ended:
                    task.result()
                if waiting:
                    self._say(f"{len(waiting)} of {len(tasks)} still load after {time.monotonic() - start:.0f} s")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_alive(self, server: ServerProcess) -> None:
        loop, deaths = asyncio.get_running_loop(), 0
        while True:
            while server.alive:
                await asyncio.sleep(WATCH_SECONDS)
            deaths += 1
            if deaths > STARTS_IN_A_ROW:
                self._say(f"{server.url} died {deaths} times in a row and is given up; its log: {server.log}")
                self._given_up.add(server)
                if len(self._given_up) == len(self._servers) and self._client is not None:
                    await self._client.close()
                return
            self._say(f"{server.url} died and is started again; its log: {server.log}")
            await loop.run_in_executor(None, server.stop)
            server.start()
            assert self._session is not None
            with contextlib.suppress(SynthError):
                await server.ready(self._session)
                self._say(f"{server.url} is back")
                deaths = 0

    def _say(self, line: str) -> None:
        if self._progress is not None:
            print(f"teacher {self._settings.model}: {line}", file=self._progress, flush=True)
