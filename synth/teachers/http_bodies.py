"""Requests as OpenAI-compatible servers read them, and their answers as replies: the wire and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from synth.replies import Reply
from synth.requests import Request, seed_of
from synth.teachers.settings import TeacherSettings

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"

UNFINISHED: Final = frozenset({"abort", "error"})
"""Reasons of vLLM to end that are the server's own trouble: what was generated is no reply."""


class UnusableError(Exception):
    """A body that holds no reply; the text says what is missing, never what is there."""


@dataclass(frozen=True, kw_only=True)
class Sending:
    """A request ready to be sent, as often as it takes. path: of the API. body: JSON. timeout_seconds: from sending."""

    key: str
    path: str
    body: bytes
    temperature: float
    seed: int
    timeout_seconds: float


def sending(request: Request, settings: TeacherSettings, key: str, vllm: bool) -> Sending:
    """The wire form of a request. vllm: the server takes vLLM's own parameters (token ids, template arguments)."""
    seed, sampling = seed_of(key), request.sampling
    body: dict[str, Any] = {
        "model": settings.served_name,
        "max_tokens": sampling.max_tokens,
        "temperature": request.drawn_temperature,
        "top_p": sampling.top_p,
        "seed": seed,
    }
    if sampling.top_k:
        body["top_k"] = sampling.top_k
    if sampling.min_p:
        body["min_p"] = sampling.min_p
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.json_schema is not None:
        named = {"name": "reply", "schema": dict(sampling.json_schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    if vllm and settings.token_ids:
        body["return_token_ids"] = True
    path = (
        _of_prompt(body, request, settings, vllm) if request.prompt is not None else _of_chat(body, request, settings)
    )
    return Sending(
        key=key, path=path, body=json.dumps(body, separators=(",", ":")).encode(),
        temperature=request.drawn_temperature, seed=seed, timeout_seconds=settings.timeout_of(sampling.max_tokens),
    )  # fmt: skip


def _of_prompt(body: dict[str, Any], request: Request, settings: TeacherSettings, vllm: bool) -> str:
    body["prompt"] = request.prompt
    if request.sampling.logprobs:
        body["logprobs"] = request.sampling.logprobs
    if vllm and settings.prompt_bos == "text":
        body["add_special_tokens"] = False
    return COMPLETIONS


def _of_chat(body: dict[str, Any], request: Request, settings: TeacherSettings) -> str:
    body["messages"] = [dict(message) for message in request.messages]
    if request.tools:
        body["tools"] = [dict(tool) for tool in request.tools]
    if request.continues:
        body.update(continue_final_message=True, add_generation_prompt=False)
    if request.sampling.logprobs:
        body.update(logprobs=True, top_logprobs=request.sampling.logprobs)
    if settings.chat_template_arguments:
        body["chat_template_kwargs"] = dict(settings.chat_template_arguments)
    return CHAT


def refusal(request: Request) -> str:
    """Why a request is not worth sending, "" where it is."""
    schema = request.sampling.json_schema
    if schema is not None and not schema:
        # vllm#52011: any JSON is allowed, and some models then write digits without end.
        return "json_schema is empty and would allow any JSON; say what the reply is made of"
    if request.prompt is None and not request.messages:
        return "neither messages nor a prompt; give one of them"
    if request.continues and (not request.messages or request.messages[-1].get("role") != "assistant"):
        return "continues, but the last message is not the assistant's"
    return ""


def reply_of(sent: Sending, raw: bytes, seconds: float, attempts: int) -> Reply:
    """The reply in a body of status 200. Raises UnusableError where there is none."""
    try:
        data = json.loads(raw)
        choice = data["choices"][0]
        if sent.path == CHAT:
            message, prompt_ids = choice["message"], data.get("prompt_token_ids")
            content, reasoning = (
                message.get("content"),
                _text(message.get("reasoning"), message.get("reasoning_content")),
            )
            calls = message.get("tool_calls") or ""
        else:
            content, reasoning, calls, prompt_ids = choice.get("text"), None, "", choice.get("prompt_token_ids")
        finish = str(choice.get("finish_reason") or "")
        usage, logprobs = data.get("usage") or {}, choice.get("logprobs")
        if finish in UNFINISHED:
            raise UnusableError(f"the server ended it with {finish}")
        if content is None and not (reasoning or calls or finish in ("length", "content_filter")):
            raise UnusableError("no content")
        if content is not None and not isinstance(content, str):
            raise UnusableError("content is no text")
        return Reply(
            key=sent.key, text=content or "", finish_reason=finish, reasoning=reasoning,
            tool_calls=json.dumps(calls, ensure_ascii=False) if calls else "",
            prompt_ids=_ids(prompt_ids), ids=_ids(choice.get("token_ids")),
            logprobs=json.dumps(logprobs, ensure_ascii=False) if logprobs else "",
            prompt_tokens=int(usage.get("prompt_tokens") or 0),
            completion_tokens=int(usage.get("completion_tokens") or 0),
            cached_tokens=int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0),
            temperature=sent.temperature, seed=sent.seed, seconds=seconds, attempts=attempts,
        )  # fmt: skip
    except (ValueError, RecursionError):
        raise UnusableError("torn or malformed JSON") from None
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UnusableError("JSON that is no reply") from None


def _text(*candidates: Any) -> str | None:
    return next((value for value in candidates if isinstance(value, str)), None)


def _ids(value: Any) -> tuple[int, ...] | None:
    return tuple(map(int, value)) if isinstance(value, list) else None


def too_long(raw: bytes) -> bool:
    """Whether a refusal of a request says that it does not fit into the model's context.

    By the words of vLLM 0.32, OpenAI and SGLang; the text itself may quote the prompt and goes no further.
    """
    told = raw[:2000].decode("utf-8", "replace").lower()
    return "context length" in told or "context_length" in told or "maximum model length" in told or "too long" in told


def served_models(raw: bytes) -> tuple[set[str], bool]:
    """Names that /v1/models tells, and whether the server is vLLM. Raises UnusableError for another body."""
    try:
        cards = json.loads(raw)["data"]
        names = {str(card[name]) for card in cards for name in ("id", "root") if card.get(name)}
        return names, any(_owner(card) == "vllm" for card in cards)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UnusableError("no list of models") from None


def _owner(card: Mapping[str, Any]) -> str:
    return str(card.get("owned_by") or "")
