"""Proof that a conversation is trained on as it should be: rendered by the target's template, encoded, read back.

`train.sft` renders step by step and refuses what does not hold: an answer that does not begin where its generation
prompt ends, one that the template changes or drops (its reasoning, too), a token across an answer's edge, ids that do
not decode to the answer. Here stands what it leaves to an export: exactly the template's one BOS, a mask over the last
answer alone, and the whole text round trip.
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
        if bos is not None:
            wanted = 1 if self._begins_with_bos else 0
            if int(np.sum(ids == bos)) != wanted or (wanted and ids[0] != bos):
                return RefusedRowError("export.bos_count")
        if np.flatnonzero(np.diff(mask.astype(np.int8)) == 1).size != 1:
            return RefusedRowError("export.mask_spans")
        decoded = tokenizer.library.decode(ids.tolist(), skip_special_tokens=False)
        if tokenizer.library.normalizer is None and decoded != example.text:
            return RefusedRowError("export.round_trip")
        return {"input_ids": ids.tolist(), "loss_mask": mask.tolist()}

    @cached_property
    def _begins_with_bos(self) -> bool:
        """Whether this template, under this policy, writes a BOS at all."""
        name = self.reading.tokenizer.names.get("bos_token") or ""
        prepended = self.reading.chat.bos == "prepend"
        probe = [{"role": "user", "content": "a"}]
        template = self.reading.template
        written = template is not None and template.render(probe, (), generation_prompt=True).text.startswith(name)
        return prepended or (bool(name) and written)


def _only_last(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [*({**one, "train": False} for one in told[:-1]), told[-1]]
