"""Settings of a teacher: which model answers, where it runs, and how patiently it is asked."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.errors import SynthError
from synth.requests import Identity, digest

Argument = str | bool | int | float | None
Backend = Literal["http", "vllm", "in_process"]
Url = Annotated[str, Field(pattern=r"^https?://[^\s/]+")]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Vllm:
    """Servers of vLLM that are started for the run and stopped behind it.

    path: folder or hub name of the weights; None takes the teacher's `model`, which is then also what it is served as.
    python: interpreter of the environment that vLLM stands in; None looks for .venv-teacher/bin/python, then takes
        this one.
    replicas: servers, each with the whole model. device: gpu or cpu. devices: the GPUs to use, by number; () takes
        those that CUDA_VISIBLE_DEVICES or the machine has. gpus_per_replica: of tensor parallelism.
    arguments: further ones of `vllm serve`, named as there without the dashes (max-model-len: 4096); true is a bare
        flag. environment: variables for the servers.
    start_timeout_seconds: until a server must answer; loading and compiling a large model takes minutes.
    stop_timeout_seconds: from asking a server to end until it is ended by force.
    """

    path: str | None = None
    python: str | None = None
    replicas: int = Field(default=1, ge=1)
    device: Literal["gpu", "cpu"] = "gpu"
    devices: tuple[Annotated[int, Field(ge=0)], ...] = ()
    gpus_per_replica: int = Field(default=1, ge=1)
    arguments: dict[str, Argument] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    start_timeout_seconds: float = Field(default=1800.0, gt=0)
    stop_timeout_seconds: float = Field(default=30.0, gt=0)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class InProcess:
    """vLLM in the process of the run itself, which must stand in vLLM's environment.

    path: folder or hub name of the weights; None takes the teacher's `model`. device: gpu or cpu.
    arguments: of the engine (vllm.EngineArgs), named as there (max_model_len: 4096).
    """

    path: str | None = None
    device: Literal["gpu", "cpu"] = "gpu"
    arguments: dict[str, Argument] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class TeacherSettings:
    """Who answers: exactly one of `urls`, `vllm` and `in_process`.

    model, revision: names under which replies are stored for ever. Another revision is another teacher.
    served_as: the model's name at the server; None is `model`.
    chat_template: path of the Jinja file that renders conversations, a digest of which is part of the identity; None
        is the model's own. Servers at `urls` must have been started with it: few take one by request.
    chat_template_arguments: further names that the template reads (enable_thinking: false); vLLM takes them by request.
    prompt_bos: who puts the BOS before raw prompts: server, or text, where the prompts have it themselves.
    urls: of OpenAI-compatible servers with this model, up to but without /v1; several are balanced.
    vllm: servers started by the run. in_process: vLLM in the run's own process.
    api_key_variable: NAME of the environment variable that holds the key; the key itself never stands in settings.
    token_ids: ask for the ids of prompt and reply where the server can (vLLM).
    price_prompt, price_completion: of a million tokens, in whatever currency budgets have. price_hour: of an hour of
        the whole teacher, where machines are rented.
    max_in_flight: requests at once over all replicas. More than replicas x vLLM's max_num_seqs only queue there.
    timeout_seconds, timeout_seconds_per_token: a request may take the first plus max_tokens times the second, from its
        sending on. 0.1 is 10 tokens a second: a fifth of what a crowded GPU gives one request.
    attempts: how often a request is sent at most. backoff_seconds: pause before the second attempt; it doubles up to
        backoff_max_seconds. A server's Retry-After goes before it.
    outage_seconds: how long requests wait for a server to come back when none is healthy.
    """

    model: Annotated[str, Field(min_length=1)]
    revision: str = ""
    served_as: str | None = None
    chat_template: str | None = None
    chat_template_arguments: dict[str, Argument] = Field(default_factory=dict)
    prompt_bos: Literal["server", "text"] = "server"
    urls: tuple[Url, ...] = ()
    vllm: Vllm | None = None
    in_process: InProcess | None = None
    api_key_variable: Annotated[str, Field(pattern=r"^([A-Z_][A-Z0-9_]*)?$")] = ""
    token_ids: bool = True
    price_prompt: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    price_completion: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    price_hour: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    max_in_flight: int = Field(default=256, ge=1)
    timeout_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    timeout_seconds_per_token: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    attempts: int = Field(default=8, ge=1)
    backoff_seconds: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    backoff_max_seconds: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    outage_seconds: float = Field(default=300.0, ge=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _one_backend(self) -> TeacherSettings:
        if sum((bool(self.urls), self.vllm is not None, self.in_process is not None)) != 1:
            raise ValueError("urls, vllm, in_process: give exactly one of them, as where the teacher runs")
        if repeated := next((url for url in self.urls if self.urls.count(url) > 1), None):
            raise ValueError(f"urls: {repeated} stands there twice; one entry a server")
        return self

    @property
    def backend(self) -> Backend:
        return "http" if self.urls else "vllm" if self.vllm else "in_process"

    @property
    def served_name(self) -> str:
        return self.served_as or self.model

    def identity(self) -> Identity:
        """Of the settings alone, so that a run can be planned, resumed and verified with no teacher there.

        What changes prompts without a trace in the requests is in `template`: the file's text, its arguments, who adds
        the BOS. Raises SynthError for a template that cannot be read.
        """
        told: dict[str, object] = {}
        if self.chat_template is not None:
            told["text"] = _read(self.chat_template)
        if self.chat_template_arguments:
            told["arguments"] = dict(self.chat_template_arguments)
        if self.prompt_bos != "server":
            told["prompt_bos"] = self.prompt_bos
        return Identity(model=self.model, revision=self.revision, template=digest(told) if told else "")

    def api_key(self) -> str:
        """The key's value, "" for none. Raises SynthError where the variable is not set."""
        if not self.api_key_variable:
            return ""
        key = os.environ.get(self.api_key_variable, "")
        if not re.fullmatch(r"[\x21-\x7e]+", key):
            raise SynthError(f"api_key_variable: {self.api_key_variable} holds no key; export it before the run")
        return key

    def timeout_of(self, max_tokens: int) -> float:
        """Seconds that a request for so many tokens may take."""
        return self.timeout_seconds + max_tokens * self.timeout_seconds_per_token

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Price of so many tokens."""
        return (prompt_tokens * self.price_prompt + completion_tokens * self.price_completion) / 1e6


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise SynthError(f"chat_template: {path}: {reason}; name a Jinja file") from None
