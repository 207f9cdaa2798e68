"""Instructions that an aligned model writes by itself when given nothing but the start of a user's turn.

Source: Magpie, Xu et al. 2024 (arXiv:2406.08464). The start (the pre-query template) belongs to the teacher's chat
template; it is sent as raw text, and the reply is what a user would have asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Final

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item
from synth.tasks.answering import answer, refused
from synth.tasks.asking import Asking, given
from synth.tasks.candidates import Candidate, ask

# What stands before the system's text, between it and the user's turn, and what ends the user's turn, each as the
# models' own chat templates have it. The BOS is the server's to add (see TeacherSettings.prompt_bos).
TEMPLATES: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "chatml": ("<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n", ("<|im_end|>",)),
    "llama3": (
        "<|start_header_id|>system<|end_header_id|>\n\n",
        "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
        ("<|eot_id|>",),
    ),
    "gemma": ("<start_of_turn>user\n", "\n\n", ("<end_of_turn>",)),
    "mistral": ("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT][INST]", ("[/INST]",)),
}
STARTS: Final = {
    "chatml": "<|im_start|>user\n",
    "llama3": "<|start_header_id|>user<|end_header_id|>\n\n",
    "gemma": "<start_of_turn>user\n",
    "mistral": "[INST]",
}
CONTROL: Final = re.compile(r"<\|[^|<>]{1,40}\|>|<(?:start|end)_of_turn>|\[/?INST\]|\[/?SYSTEM_PROMPT\]|</?s>")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Magpie:
    """Let the teacher write `count` user's turns for each row, whose prompt is the system's text (a field, a style);
    without rows, for no system's text. Then have each answered, without that system's text.

    family: chat template of the teacher; custom takes `start` (up to where the user's words begin, {system} standing
        for the system's text) and `stop` (what ends a user's turn).
    count: turns in all for each row. instruction: min_words to max_words words.
    answer_prompt: the template that an instruction is answered with. writing, answering: how each is asked; the paper
        draws instructions hot and answers them cold.
    """

    name: ClassVar[str] = "magpie"
    version: ClassVar[int] = 1

    family: str = "chatml"
    start: str = ""
    stop: tuple[str, ...] = ()
    count: int = Field(default=1000, ge=1)
    min_words: int = Field(default=3, ge=1)
    max_words: int = Field(default=400, ge=1)
    answer_prompt: Annotated[str, given("question")] = "question"
    writing: Asking = Field(default_factory=lambda: Asking(max_tokens=512))
    answering: Asking = Field(default_factory=lambda: Asking(temperature=0.0))

    @model_validator(mode="after")
    def _known(self) -> Magpie:
        if self.family == "custom":
            if not self.start or not self.stop:
                raise ValueError("start, stop: a custom family needs both")
        elif self.family not in TEMPLATES:
            raise ValueError(f"family: there are {', '.join(TEMPLATES)} and custom")
        elif self.start or self.stop:
            raise ValueError("start, stop: for family custom alone")
        return self

    def items(self, rows: Iterable[Item]) -> Iterator[Item]:
        """`count` of each row, numbered: the number is the rollout, so that no two share a reply."""
        empty = True
        for row in rows:
            empty = False
            yield from self._numbered(row)
        if empty:
            yield from self._numbered(Item(id="magpie"))

    def _numbered(self, row: Item) -> Iterator[Item]:
        for number in range(self.count):
            yield replace(row, id=f"{row.id}/{number}", options={**row.options, "number": number})

    def flow(self, item: Item, desk: Desk) -> Flow:
        number = int(item.options["number"])
        start, stop = self._start(item.prompt)
        made = yield from ask(
            [Candidate(at=number)], self.writing,
            lambda one: self.writing.prompt_request(start, rollout=one.at, stop=stop),
        )  # fmt: skip
        made = [self._instruction(one) for one in made]
        made = yield from answer(made, self.answering, self.answer_prompt)
        return [refused(one).sample(item, 0) for one in made]

    def _start(self, system: str) -> tuple[str, tuple[str, ...]]:
        """The raw prompt, and what ends the turn that the teacher writes."""
        if self.family == "custom":
            return self.start.replace("{system}", system), self.stop
        before, between, stop = TEMPLATES[self.family]
        return (f"{before}{system}{between}" if system else STARTS[self.family]), stop

    def _instruction(self, made: Candidate) -> Candidate:
        if not made.open:
            return made
        text = made.answer
        words = len(text.split())
        if CONTROL.search(text):
            return made.rejected("instruction.control_token")
        if words < self.min_words:
            return made.rejected("instruction.too_short")
        return made.rejected("instruction.too_long") if words > self.max_words else replace(made, text=text)
