"""Proof that a conversation is trained on as it should be: rendered by the target's template, encoded, read back.

`train.sft` renders step by step and refuses what does not hold: an answer that does not begin where its generation
prompt ends, one that the template changes or drops (its reasoning, too), a token across an answer's edge, ids that do
not decode to the answer. Here stands what it leaves to an export: BOS exactly as the template has it, a mask over the
last answer alone, and the whole text round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from synth.errors import SynthError
from synth.exports.columns import RefusedRowError

if TYPE_CHECKING:
    from train.sft import Chat, Reading


@dataclass(frozen=True, kw_only=True)
class Proof:
    """model: folder with the target's tokenizer and chat template. chat: as train.sft takes it; None: its defaults."""

    model: str
    chat: Chat | None = None

    def encode(self, conversations: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any] | RefusedRowError]:
        """{"input_ids", "loss_mask"} of each conversation, the last message trained on; or why it is refused."""
        from train.sft import Raw

        rows = [({"messages": _only_last(told)}, f"row {number}") for number, told in enumerate(conversations)]
        raws = [(Raw(location=where, values=values), False) for values, where in rows]
        return [self._proved(outcome) for outcome in self.reading.outcomes(raws)]

    @cached_property
    def reading(self) -> Reading:
        """Raises SynthError where the folder has no tokenizer or template that can be read."""
        from train.sft import Chat, Reading, SftError, load_chat_tokenizer

        try:
            return Reading.of(self.chat or Chat(), load_chat_tokenizer(self.model), self.model)
        except SftError as error:
            raise SynthError(str(error)) from None

    def _proved(self, outcome: Any) -> dict[str, Any] | RefusedRowError:
        if outcome.refused is not None:
            return RefusedRowError(f"export.{outcome.refused.reason}")
        if len(outcome.made) != 1:
            return RefusedRowError("export.history_rewritten")
        example, encoded = outcome.made[0]
        tokenizer, ids, mask = self.reading.tokenizer, encoded.ids, encoded.trained
        bos = tokenizer.id_of(tokenizer.names.get("bos_token"))
        if bos is not None and self._bos_wrong(ids, bos, example):
            return RefusedRowError("export.bos_count")
        if np.flatnonzero(np.diff(mask.astype(np.int8)) == 1).size != 1:
            return RefusedRowError("export.mask_spans")
        decoded = tokenizer.library.decode(ids.tolist(), skip_special_tokens=False)
        if tokenizer.library.normalizer is None and decoded != example.text:
            return RefusedRowError("export.round_trip")
        return {"input_ids": ids.tolist(), "loss_mask": mask.tolist()}

    def _bos_wrong(self, ids: Any, bos: int, example: Any) -> bool:
        """Whether BOS stands otherwise than the template and the policy have it: once at the start, or nowhere; in
        templates that begin each message with it (SmolLM2's), as often as they write it."""
        count, starts = int(np.sum(ids == bos)), bool(ids[0] == bos)
        if self._bos_frames_messages:
            name = self._bos_name
            spelt = sum(example.text.count(name, start, stop) for start, stop in example.literal)
            return bool(count != example.text.count(name) - spelt + (self.reading.chat.bos == "prepend"))
        return (count, starts) != ((1, True) if self._begins_with_bos else (0, False))

    @cached_property
    def _begins_with_bos(self) -> bool:
        """Whether this template, under this policy, writes a BOS at all."""
        return self.reading.chat.bos == "prepend" or self._written(1).startswith(self._bos_name)

    @cached_property
    def _bos_frames_messages(self) -> bool:
        """Whether the template writes BOS more often in a longer conversation."""
        return self._written(3).count(self._bos_name) > self._written(1).count(self._bos_name)

    @property
    def _bos_name(self) -> str:
        return self.reading.tokenizer.names["bos_token"]

    def _written(self, turns: int) -> str:
        template = self.reading.template
        probe = [{"role": ("user", "assistant")[at % 2], "content": "a"} for at in range(turns)]
        return template.render(probe, (), generation_prompt=True).text if template is not None else ""


def _only_last(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*({**one, "train": False} for one in told[:-1]), told[-1]]
