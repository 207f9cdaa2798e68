"""A teacher at OpenAI-compatible servers: asked patiently, as many at once as they bear, and nothing is lost."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Sequence
from typing import Final

import aiohttp

from synth.errors import SynthError
from synth.replies import Failure, Reply, TeacherError
from synth.requests import Identity, Request
from synth.teachers.http_bodies import Sending, UnusableError, refusal, reply_of, sending, served_models
from synth.teachers.http_faults import Fault, fault_of, pause_seconds
from synth.teachers.http_replicas import Limit, OutageError, Replica, Replicas
from synth.teachers.settings import TeacherSettings

CONNECT_SECONDS: Final = 10.0
CHECK_TIMEOUT: Final = aiohttp.ClientTimeout(total=10.0)
MAX_BODY_BYTES: Final = 256 * 2**20
"""Of a reply: 100 times what 32,768 tokens with ids and 20 alternatives each come to; beyond it a server is broken."""

OPEN_FILES_BESIDE: Final = 128
"""File descriptors left for the store, the shards and the verifiers."""


class HttpTeacher:
    """The teacher at `urls`, the settings' own where none are given. Settings say how it is asked; see TeacherSettings.

    Each attempt has a time of its own from when it is sent, never from when it began to wait. A request that a server
    refused twice (HTTP 400, 413 or 422) is final, others may be asked again by the next run.
    """

    def __init__(self, settings: TeacherSettings, urls: Sequence[str] | None = None) -> None:
        self._settings = settings
        self._urls = tuple(url.rstrip("/").removesuffix("/v1") for url in urls or settings.urls)
        self._identity = settings.identity()
        self._session: aiohttp.ClientSession | None = None
        self._replicas: Replicas | None = None
        self._vllm = False

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def capacity(self) -> int:
        return self._settings.max_in_flight

    async def open(self) -> None:
        """Reach the servers: at least one must be there, and each that is must serve the model."""
        settings = self._settings
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "gristmill"}
        if key := settings.api_key():
            headers["Authorization"] = f"Bearer {key}"
        _enough_open_files(settings.max_in_flight)
        # No limit and no wait in aiohttp's pool: a request's time would run there.
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
        self._session = aiohttp.ClientSession(connector=connector, headers=headers, cookie_jar=aiohttp.DummyCookieJar())
        replicas = [Replica(url=url, limit=Limit(cap=settings.max_in_flight)) for url in self._urls]
        self._replicas = Replicas(
            replicas=replicas, max_in_flight=settings.max_in_flight, outage_seconds=settings.outage_seconds,
            check=self._healthy,
        )  # fmt: skip
        told = await asyncio.gather(*(self._serves(url) for url in self._urls))
        if not any(reached for reached, _ in told):
            raise SynthError(f"urls: no server answers at {self._urls[0]}; start it, or name another")
        self._vllm = all(vllm for reached, vllm in told if reached)
        for replica, (reached, _) in zip(replicas, told, strict=True):
            if not reached:
                self._replicas.ill(replica)

    async def close(self) -> None:
        """Let go of the connections; requests in flight are given up."""
        if self._replicas is not None:
            await self._replicas.close()
        if self._session is not None:
            await self._session.close()
        self._replicas = self._session = None

    async def generate(self, request: Request) -> Reply:
        """The reply of the first attempt that gives one; TeacherError when none did."""
        settings = self._settings
        key = request.key(self._identity)
        if reason := refusal(request):
            raise TeacherError(Failure(key=key, stage="refused", error=reason, attempts=0, final=True))
        sent = sending(request, settings, key, self._vllm)
        last: Fault | None = None
        avoid: Replica | None = None
        for attempt in range(1, settings.attempts + 1):
            if last is not None:
                await asyncio.sleep(pause_seconds(settings, key, attempt - 1, last))
            try:
                return await self._attempt(sent, attempt, avoid)
            except OutageError:
                told = f"no server was healthy for {settings.outage_seconds:g} s"
                raise TeacherError(Failure(key=key, stage="send", error=told, attempts=attempt - 1)) from None
            except _FaultAt as at:
                fault, avoid = at.fault, at.replica
                if fault.refused and last is not None and last.refused:
                    raise TeacherError(_failure(key, fault, attempt, final=True)) from None
                last = fault
        assert last is not None
        raise TeacherError(_failure(key, last, settings.attempts, final=False))

    async def _attempt(self, sent: Sending, attempt: int, avoid: Replica | None) -> Reply:
        replicas = self._replicas
        assert replicas is not None, "open() comes first"
        replica = await replicas.take(avoid)
        generation = replica.limit.generation
        refused: bool | None = None
        failed = False
        try:
            reply = await self._send(sent, replica, attempt)
            refused = False
            return reply
        except Fault as fault:
            refused = True if fault.overload else None
            failed = fault.health == "doubtful"
            if fault.health == "ill":
                replicas.ill(replica)
            raise _FaultAt(fault, replica) from None
        finally:
            replicas.release(replica, generation, refused, failed)

    async def _send(self, sent: Sending, replica: Replica, attempt: int) -> Reply:
        assert self._session is not None
        start, url = time.perf_counter(), replica.url + sent.path
        limit = aiohttp.ClientTimeout(total=sent.timeout_seconds, sock_connect=CONNECT_SECONDS)
        stage = "send"
        try:
            async with self._session.post(url, data=sent.body, timeout=limit, allow_redirects=False) as response:
                stage = "read"
                raw = await _body(response)
                if response.status != 200:
                    raise fault_of(response.status, raw, response.headers.get("Retry-After", ""))
            return reply_of(sent, raw, time.perf_counter() - start, attempt)
        except UnusableError as error:
            raise Fault(stage="read", error=str(error), overload=False) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Fault(stage="send", error=f"no connection ({type(error).__name__})", health="ill") from None
        except TimeoutError:
            raise Fault(stage="wait", error=f"no reply within {sent.timeout_seconds:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Fault(stage=stage, error=f"connection lost ({type(error).__name__})") from None

    async def _serves(self, url: str) -> tuple[bool, bool]:
        """Whether a server is there and whether it is vLLM. Raises SynthError for one that serves another model."""
        assert self._session is not None
        try:
            async with self._session.get(f"{url}/v1/models", timeout=CHECK_TIMEOUT) as response:
                raw, status = await _body(response), response.status
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False, False
        if status in (401, 403):
            name = self._settings.api_key_variable or "none given"
            raise SynthError(f"api_key_variable: {url} does not take the key ({name}); name the variable that holds it")
        if status >= 500:
            return False, False
        try:
            names, vllm = served_models(raw) if status == 200 else (set(), False)
        except UnusableError:
            names, vllm = set(), False
        if self._settings.served_name not in names:
            known = ", ".join(sorted(names)[:3]) or "no list of models"
            raise SynthError(f"model: {url} does not serve {self._settings.served_name}, but {known}")
        return True, vllm

    async def _healthy(self, url: str) -> bool:
        if self._session is None:
            return False
        try:
            async with self._session.get(f"{url}/health", timeout=CHECK_TIMEOUT) as response:
                # Hosted APIs have no such page; that they answer is enough.
                return response.status < 500
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False


class _FaultAt(Exception):
    def __init__(self, fault: Fault, replica: Replica) -> None:
        super().__init__(fault.error)
        self.fault, self.replica = fault, replica


async def _body(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_BODY_BYTES:
            response.close()
            raise Fault(stage="read", error=f"a body of more than {MAX_BODY_BYTES >> 20} MiB", overload=False)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _failure(key: str, fault: Fault, attempts: int, final: bool) -> Failure:
    return Failure(key=key, stage=fault.stage, error=fault.error, attempts=attempts, final=final)


def _enough_open_files(max_in_flight: int) -> None:
    """A connection each must be open at once. Raises the soft limit where that is allowed, else SynthError."""
    wanted = max_in_flight + OPEN_FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise SynthError(f"max_in_flight: {max_in_flight} needs {wanted} open files, {hard} are allowed (ulimit -n)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
