"""A simulated teacher as a real HTTP server, OpenAI-compatible, with the faults that real ones have."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from typing import Any, Final

from aiohttp import web

from synth.requests import digest
from synth.simulator.answering import Answerer, texts
from synth.simulator.settings import Faults, SimulatorSettings
from synth.simulator.skill import drawn
from synth.simulator.speech import Said, cut, encode

MAX_REQUEST_BYTES: Final = 64 * 2**20
LOGPROB_OF_CERTAIN: Final = -1e-4


class Simulator:
    """The server's state: what was asked how often, what was given. It is lost with the process; replies are not."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self.settings = settings
        self._answerer = Answerer(settings)
        self._attempts: Counter[str] = Counter()
        self._replied: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._faulted: Counter[str] = Counter()
        self._in_flight = self._peak = self._completion_tokens = self._given_up = 0

    def application(self) -> web.Application:
        """Its routes."""
        application = web.Application(client_max_size=MAX_REQUEST_BYTES)
        application.add_routes(
            [
                web.post("/v1/chat/completions", self.complete),
                web.post("/v1/completions", self.complete),
                web.get("/v1/models", self.models),
                web.get("/health", self.health),
                web.get("/stats", self.stats),
            ]
        )
        return application

    async def health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def models(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return _error(401, "the key is not known", "authentication_error")
        owner = "vllm" if self.settings.vllm else "simulator"
        card = {"id": self.settings.model, "object": "model", "owned_by": owner, "root": self.settings.model}
        return web.json_response({"object": "list", "data": [card]})

    async def stats(self, request: web.Request) -> web.Response:
        """attempts, replies: by key of the body, how often it came and was wholly answered. faults: given, by kind."""
        return web.json_response(
            {
                "attempts": dict(self._attempts), "replies": dict(self._replied), "faults": dict(self._faults),
                "peak_in_flight": self._peak, "in_flight": self._in_flight, "given_up": self._given_up,
                "completion_tokens": self._completion_tokens,
            }
        )  # fmt: skip

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """One reply, or a fault."""
        if not self._allowed(request):
            return _error(401, "the key is not known", "authentication_error")
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        try:
            if self.settings.bears and self._in_flight > self.settings.bears:
                self._faults["over_what_it_bears"] += 1
                return self._too_many()
            raw = await request.read()
            try:
                body = json.loads(raw)
                key = digest(body)
                refused = self._refused(body, chat=request.path.endswith("chat/completions"))
            except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
                return _error(400, "no request in JSON", "BadRequestError")
            self._attempts[key] += 1
            return refused or await self._answer(request, body, key)
        except asyncio.CancelledError:
            self._given_up += 1
            raise
        finally:
            self._in_flight -= 1

    async def _answer(self, request: web.Request, body: dict[str, Any], key: str) -> web.StreamResponse:
        settings = self.settings
        fault = self._fault(key)
        if fault == "too_many":
            return self._too_many()
        if fault == "server_error":
            status = 500 if drawn("status", key, self._attempts[key]) < 0.5 else 503
            return _error(status, "simulated", "InternalServerError")
        if fault == "hang":
            await asyncio.sleep(settings.faults.hang_seconds)
            return _error(504, "simulated", "InternalServerError")
        data, tokens = self._data(request, body, key)
        if delay := self._delay(tokens):
            await asyncio.sleep(delay)
        if fault == "empty":
            data["choices"] = []
        elif fault == "null":
            data["choices"][0].update(message={"role": "assistant", "content": None}, text=None, finish_reason="stop")
        raw = json.dumps(data, separators=(",", ":")).encode()
        if fault == "torn":
            raw = raw[: len(raw) // 2]
        elif fault == "reset":
            return await _reset(request, raw)
        elif not fault:
            self._replied[key] += 1
            self._completion_tokens += tokens
        return web.Response(body=raw, content_type="application/json")

    def _fault(self, key: str) -> str:
        """The fault of this attempt, "" for none."""
        faults: Faults = self.settings.faults
        if faults.most and self._faulted[key] >= faults.most:
            return ""
        number = drawn("fault", self.settings.seed, key, self._attempts[key])
        for name, share in faults.shares().items():
            if number < share:
                self._faults[name] += 1
                self._faulted[key] += 1
                return name
            number -= share
        return ""

    def _refused(self, body: dict[str, Any], chat: bool) -> web.Response | None:
        """What a server says to a request that it cannot serve."""
        if body.get("model") != self.settings.model:
            return _error(404, "the model does not exist", "NotFoundError")
        if not body["messages"] if chat else not isinstance(body["prompt"], str):
            return _error(400, "nothing to go on from", "BadRequestError")
        wanted = len(self._prompt_ids(body)) + int(body.get("max_tokens", 16))
        if wanted > self.settings.context_tokens:
            told = f"This model's maximum context length is {self.settings.context_tokens} tokens, {wanted} were asked"
            return _error(400, told, "BadRequestError")
        return None

    def _prompt_ids(self, body: dict[str, Any]) -> list[int]:
        last, others = texts(body)
        return encode(f"{others}\n{last}", self.settings.speech.bytes_per_token)

    def _data(self, request: web.Request, body: dict[str, Any], key: str) -> tuple[dict[str, Any], int]:
        """The JSON of a reply, and its completion tokens."""
        size = self.settings.speech.bytes_per_token
        chat = request.path.endswith("chat/completions")
        said = _cut(self._answerer.say(body), body, size, chat)
        prompt_ids, ids = self._prompt_ids(body), encode((said.reasoning or "") + said.text, size)
        choice: dict[str, Any] = {"index": 0, "finish_reason": said.finish_reason}
        data: dict[str, Any] = {"id": f"sim-{key[:16]}", "model": self.settings.model, "choices": [choice]}
        if chat:
            choice["message"] = _message(said)
        else:
            choice["text"] = said.text
        if body.get("logprobs"):
            choice["logprobs"] = _logprobs(said, chat)
        if self.settings.vllm and body.get("return_token_ids"):
            choice["token_ids"] = ids
            (data if chat else choice)["prompt_token_ids"] = prompt_ids
        usage = {"prompt_tokens": len(prompt_ids), "completion_tokens": len(ids)}
        data["usage"] = usage | {"total_tokens": len(prompt_ids) + len(ids)}
        return data, len(ids)

    def _delay(self, tokens: int) -> float:
        law = self.settings.latency
        rates = [law.tokens_per_second or math.inf, law.total_tokens_per_second / self._in_flight or math.inf]
        return (law.first_token_seconds + tokens / min(rates)) * law.scale

    def _too_many(self) -> web.Response:
        response = _error(429, "simulated", "RateLimitError")
        response.headers["Retry-After"] = f"{math.ceil(self.settings.faults.retry_after_seconds)}"
        return response

    def _allowed(self, request: web.Request) -> bool:
        wanted = self.settings.api_key
        return not wanted or request.headers.get("Authorization") == f"Bearer {wanted}"


def _cut(said: Said, body: dict[str, Any], size: int, chat: bool) -> Said:
    """At stop strings, and at max_tokens, which reasoning of a field of its own uses up first."""
    text, reasoning, finish = said.text, said.reasoning if chat else None, said.finish_reason
    stops = body.get("stop") or []
    places = [at for stop in ([stops] if isinstance(stops, str) else stops) if (at := text.find(stop)) >= 0]
    text = text[: min(places)] if places else text
    left = int(body.get("max_tokens", 16))
    if reasoning is not None:
        reasoning, short = cut(reasoning, left, size)
        left -= len(encode(reasoning, size))
        if short:
            text, left = "", 0
            finish = "length"
    text, short = cut(text, max(0, left), size)
    finish = "length" if short else finish
    return Said(text=text, reasoning=reasoning, finish_reason=finish, tool=said.tool, alternatives=said.alternatives)


def _message(said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": said.text}
    if said.reasoning is not None:
        message["reasoning"] = said.reasoning
        if not said.text:
            message["content"] = None
    if said.tool:
        call = {"id": "call-0", "type": "function", "function": {"name": said.tool, "arguments": said.text}}
        message.update(content=None, tool_calls=[call])
    return message


def _logprobs(said: Said, chat: bool) -> dict[str, Any]:
    """Of the first token alone: a rule's probabilities, or the text for certain."""
    chances = said.alternatives or {said.text: math.exp(LOGPROB_OF_CERTAIN)}
    logs = {token: math.log(chance) if chance else -9999.0 for token, chance in chances.items()}
    if not chat:
        return {"tokens": [said.text], "token_logprobs": [logs.get(said.text, -9999.0)], "top_logprobs": [logs]}
    top = [{"token": token, "logprob": value} for token, value in sorted(logs.items(), key=lambda one: -one[1])]
    return {"content": [{"token": said.text, "logprob": logs.get(said.text, -9999.0), "top_logprobs": top}]}


def _error(status: int, message: str, kind: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": kind, "code": status}}, status=status)


async def _reset(request: web.Request, raw: bytes) -> web.StreamResponse:
    """A body that is announced whole, half sent, and cut off with its connection."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(raw))})
    await response.prepare(request)
    await response.write(raw[: len(raw) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response
