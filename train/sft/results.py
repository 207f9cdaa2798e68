"""What a run leaves: the model with all that chatting with it needs, the adapters, and the account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn

from shards.store import join, read_json
from train.model.checkpoint import save_hugging_face
from train.sft.adapters import base_name, merged, save_adapter
from train.sft.encoding import ChatTokenizer
from train.sft.settings import Sft
from train.sft.templates import ChatTemplate


@dataclass(frozen=True, kw_only=True)
class FineTuned:
    """The result of a run.

    steps: updates. epochs: of the packed rows. tokens: targets trained on, over all steps. loss: nats a target of the
    last step. held_out_before, held_out_after: nats a trained token of held-out conversations; None where there are
    none. rows, refused, example_tokens, slots: the account, each example once (train.sft.examples, train.sft.packing).
    rollbacks: what the guard did. model, adapter: folders; None where none was asked for.
    """

    steps: int
    epochs: float
    tokens: int
    loss: float | None
    held_out_before: float | None
    held_out_after: float | None
    rows: dict[str, int]
    refused: dict[str, int]
    example_tokens: dict[str, int]
    slots: dict[str, Any]
    rollbacks: list[dict[str, Any]]
    model: str | None
    adapter: str | None

    def stored(self) -> dict[str, Any]:
        """As trained.json has it: folders are named from OUT."""
        told = asdict(self)
        return {**told, **{key: key for key in ("model", "adapter") if told[key] is not None}}


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes OUT/model and OUT/adapter. base: the folder of the model that was tuned. end_ids: that were trained."""

    settings: Sft
    tokenizer: ChatTokenizer
    template: ChatTemplate | None
    base: str
    end_ids: tuple[int, ...]

    def write(self, model: nn.Module, state: Mapping[str, Tensor], out: str) -> None:
        lora, tokenizer = self.settings.lora, self.tokenizer
        if lora is not None:
            save_adapter(state, lora, join(out, "adapter"), base_name(self.base))
            if not lora.merge:
                return
            state = merged(state, lora)
        save_hugging_face(
            model,
            join(out, "model"),
            self.base,
            dtype=self.settings.model_dtype,
            state=state,
            bos_id=tokenizer.id_of(tokenizer.names.get("bos_token")),
            eos_id=self._ends(),
            pad_id=tokenizer.id_of(tokenizer.names.get("pad_token")),
            chat_template=None if self.template is None else self.template.source,
        )

    def _ends(self) -> tuple[int, ...] | None:
        """Where generation stops: the tokenizer's EOS first, the end tokens that were trained, the base model's own."""
        own = self.tokenizer.id_of(self.tokenizer.names.get("eos_token"))
        told = [*([] if own is None else [own]), *self.end_ids]
        for name in ("generation_config.json", "config.json"):
            found = (read_json(join(self.base, name)) or {}).get("eos_token_id")
            told += found if isinstance(found, list) else [] if found is None else [found]
        return tuple(dict.fromkeys(told)) or None
