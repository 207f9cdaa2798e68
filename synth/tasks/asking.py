"""How a task asks a teacher: who, with what sampling, how its replies are read and what each end is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.prompts import render, template
from synth.replies import Finish
from synth.requests import Message, Request, Sampling
from synth.teachers.finishing import FinishPolicy
from synth.teachers.parsing import Tags


def given(*names: str) -> AfterValidator:
    """Marks a setting that refers to a prompt template (see synth.prompts) which is filled in with these values.

    It is read once the settings are made, so that a mistake in it is told before anything is asked. Without names:
    with what a row has, which may be too little for that row.
    """

    def fits(reference: str) -> str:
        chosen = template(reference)
        needed = set(chosen.variables) - set(chosen.defaults) - set(names)
        if names and needed:
            raise ValueError(f"prompt {reference!r} needs {min(needed)}; here it is given {', '.join(names)}")
        return reference

    return AfterValidator(fits)


def filled(reference: str, /, **values: Any) -> tuple[Message, ...]:
    """A template's messages, of those values that it reads."""
    known = template(reference).variables
    return render(reference, **{name: value for name, value in values.items() if name in known})


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Asking:
    """How a teacher is asked.

    teacher: the recipe's name of who answers. temperature, top_p, top_k, min_p: of sampling; top_k 0 and min_p 0
        switch them off. max_tokens: of a reply, reasoning included. stop: texts that end a reply.
    tags: how its reasoning is marked. finish: what is done with replies that did not end by themselves.
    """

    teacher: Annotated[str, Field(min_length=1)] = "teacher"
    temperature: float = Field(default=1.0, ge=0, le=10)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    min_p: float = Field(default=0.0, ge=0, le=1)
    max_tokens: int = Field(default=2048, ge=1)
    stop: tuple[str, ...] = ()
    tags: Tags = Field(default_factory=Tags)
    finish: FinishPolicy = Field(default_factory=FinishPolicy)

    def sampling(self, stop: tuple[str, ...] = ()) -> Sampling:
        """As a request holds it; stop: further ones."""
        return Sampling(
            temperature=self.temperature, top_p=self.top_p, top_k=self.top_k, min_p=self.min_p,
            max_tokens=self.max_tokens, stop=(*self.stop, *stop),
        )  # fmt: skip

    def request(
        self,
        messages: Sequence[Message],
        *,
        rollout: int = 0,
        temperature: float | None = None,
        continues: bool = False,
    ) -> Request:
        """For a conversation."""
        return Request(
            messages=tuple(messages), sampling=self.sampling(), rollout=rollout, temperature=temperature,
            continues=continues, teacher=self.teacher,
        )  # fmt: skip

    def prompt_request(self, prompt: str, *, rollout: int = 0, stop: tuple[str, ...] = ()) -> Request:
        """For raw text that the model goes on from, without a template."""
        return Request(prompt=prompt, sampling=self.sampling(stop), rollout=rollout, teacher=self.teacher)

    def reason(self, finish: Finish) -> str:
        """Why a reply with this end is rejected, "" where it is accepted."""
        return self.finish.reason(finish)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Deciding(Asking):
    """How a teacher is asked to classify, translate or grade: Asking, at temperature 0."""

    temperature: float = Field(default=0.0, ge=0, le=10)
