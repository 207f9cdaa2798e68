"""Requests and replies as vLLM's engine has them: prompts as token ids, sampling one by one, ends and probabilities."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from synth.replies import Failure, Reply
from synth.requests import Request, digest
from synth.teachers.http_bodies import UNFINISHED, too_long
from synth.teachers.settings import TeacherSettings

LOWEST_LOGPROB: Final = -9999.0
"""JSON has no infinity: vLLM's own servers write this for a probability of zero."""


class RefusedError(Exception):
    """A request that the engine does not take. stage, error: as in a Failure, without any text of the prompt."""

    def __init__(self, stage: str, error: str) -> None:
        super().__init__(error)
        self.stage, self.error = stage, error


class Prompts:
    """Renders prompts by vLLM's own renderer, as its server does, so that both give the same ids.

    renderer: of a vllm LLMEngine. context_tokens: of the model. template: text of a Jinja
    template in place of the model's own. The chat template puts the BOS where the model wants
    one; nothing is added to what it gives.
    """

    def __init__(self, renderer: Any, context_tokens: int, settings: TeacherSettings, template: str | None) -> None:
        self._renderer, self._context_tokens, self._template = renderer, context_tokens, template
        self._arguments = dict(settings.chat_template_arguments)
        self._adds_bos = settings.prompt_bos == "server"

    def template_digest(self) -> str:
        """Of the chat template's text that prompts are rendered with; "" for a model that has none."""
        try:
            text = self._template or self._renderer.get_tokenizer().get_chat_template()
        except (ValueError, AttributeError):
            return ""
        return digest(text)

    def render(self, request: Request) -> Any:
        """The engine's input, with `prompt_token_ids`. Raises RefusedError where it does not fit or does not render."""
        try:
            return self._raw(request) if request.prompt is not None else self._chat(request)
        except Exception as error:
            # Templates raise what they like, and say so with words of the conversation.
            if too_long(str(error).encode()) or getattr(error, "parameter", None) in ("max_tokens", "input_tokens"):
                told = "the prompt and max_tokens do not fit the model's context"
                raise RefusedError("prompt", told) from None
            raise RefusedError("refused", f"the prompt is not rendered ({type(error).__name__})") from None

    def _limits(self, request: Request, adds_bos: bool) -> Any:
        from vllm.renderers.params import TokenizeParams

        return TokenizeParams(
            max_total_tokens=self._context_tokens, max_output_tokens=request.sampling.max_tokens,
            add_special_tokens=adds_bos, max_output_tokens_param="max_tokens",
        )  # fmt: skip

    def _raw(self, request: Request) -> Any:
        [rendered] = self._renderer.render_cmpl([{"prompt": request.prompt}], self._limits(request, self._adds_bos))
        return rendered

    def _chat(self, request: Request) -> Any:
        from vllm.renderers import ChatParams

        on = request.continues
        told = {"add_generation_prompt": not on, "continue_final_message": on, "tokenize": False}
        asked = ChatParams(chat_template=self._template, chat_template_kwargs={**self._arguments, **told})
        messages = [dict(message) for message in request.messages]
        _, [rendered] = self._renderer.render_chat([messages], asked, self._limits(request, False))
        return rendered


def sampling_params(request: Request, seed: int) -> Any:
    """vLLM's SamplingParams of one request. Raises RefusedError for values that vLLM refuses."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    asked = request.sampling
    guided = None if asked.json_schema is None else StructuredOutputsParams(json=dict(asked.json_schema))
    try:
        return SamplingParams(
            temperature=request.drawn_temperature, top_p=asked.top_p, top_k=asked.top_k, min_p=asked.min_p,
            max_tokens=asked.max_tokens, stop=list(asked.stop), seed=seed, structured_outputs=guided,
            logprobs=asked.logprobs or None, output_kind=RequestOutputKind.FINAL_ONLY, skip_clone=True,
        )  # fmt: skip
    except Exception as error:
        raise RefusedError("refused", f"sampling is not taken ({type(error).__name__})") from None


def add(engine: Any, number: str, rendered: Any, params: Any) -> None:
    """The request joins the engine's batch. Raises RefusedError for one that it does not take."""
    from vllm.exceptions import VLLMClientError

    try:
        engine.add_request(number, rendered, params)
    except (VLLMClientError, ValueError) as error:
        raise RefusedError("refused", f"the engine does not take it ({type(error).__name__})") from None


def reply_of(output: Any, *, key: str, request: Request, seed: int, seconds: float) -> Reply | Failure:
    """Of a finished RequestOutput."""
    [made] = output.outputs
    finish = str(made.finish_reason or "")
    if finish in UNFINISHED:
        return Failure(key=key, stage="read", error=f"the engine ended it with {finish}")
    ids, prompt_ids = tuple(made.token_ids), tuple(output.prompt_token_ids or ())
    return Reply(
        key=key, text=made.text, finish_reason=finish, prompt_ids=prompt_ids, ids=ids,
        logprobs=_logprobs(ids, made.logprobs, request) if made.logprobs is not None else "",
        prompt_tokens=len(prompt_ids), completion_tokens=len(ids), cached_tokens=output.num_cached_tokens or 0,
        temperature=request.drawn_temperature, seed=seed, seconds=seconds,
    )  # fmt: skip


def _logprobs(ids: Sequence[int], steps: Sequence[Mapping[int, Any]], request: Request) -> str:
    """As the server writes them: OpenAI's form for chats, or that for completions."""
    count = request.sampling.logprobs
    if request.prompt is not None:
        told: dict[str, Any] = {
            "tokens": [step[one].decoded_token for one, step in zip(ids, steps, strict=True)],
            "token_logprobs": [_logprob(step[one]) for one, step in zip(ids, steps, strict=True)],
            "top_logprobs": [{one.decoded_token: _logprob(one) for one in step.values()} for step in steps],
        }
        return json.dumps(told, ensure_ascii=False)
    content = [
        _entry(step[one]) | {"top_logprobs": [_entry(other) for other in list(step.values())[:count]]}
        for one, step in zip(ids, steps, strict=True)
    ]
    return json.dumps({"content": content}, ensure_ascii=False)


def _entry(one: Any) -> dict[str, Any]:
    return {"token": one.decoded_token, "logprob": _logprob(one)}


def _logprob(one: Any) -> float:
    return max(float(one.logprob), LOWEST_LOGPROB)
