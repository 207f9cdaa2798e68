"""Settings of an export."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as settings

from synth.exports.formats import Documents, Dpo, Format, Labels, PromptCompletion, Rlvr, Sft, Steps
from synth.exports.licences import LicencePolicy, Terms
from synth.exports.proof import Proof

To = Literal["sft", "prompt_completion", "dpo", "rlvr", "documents", "labels", "steps"]


@settings(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Export:
    """How samples become a dataset.

    to: sft (messages), prompt_completion, dpo, rlvr, documents, labels or steps.
    tasks: the names of those whose samples are taken; () takes all.
    model: folder with the tokenizer and chat template that the data is for; sft then has input_ids and loss_mask, and
        sft and dpo are proved row by row. None proves nothing, and the card says so.
    chat_template: a shipped one by name or a Jinja file, in place of the model's own.
    file: parquet, or jsonl (a row a line). part_rows: rows a file.
    max_refused: share of rows that may fail their proof; they are left out and listed.
    licences: what the data is for. terms: of each teacher by its name in the recipe.
    """

    to: To = "sft"
    tasks: tuple[str, ...] = ()
    model: str | None = None
    chat_template: str | None = None
    file: Literal["parquet", "jsonl"] = "parquet"
    part_rows: int = Field(default=100_000, ge=1)
    max_refused: Annotated[float, Field(ge=0, le=1)] = 0.0
    licences: LicencePolicy = Field(default_factory=LicencePolicy)
    terms: dict[str, Terms] = Field(default_factory=dict)

    def format(self) -> Format:
        """Raises SynthError where the model's folder cannot be used."""
        proof = None
        if self.model is not None and self.to in ("sft", "dpo"):
            from train.sft import Chat

            proof = Proof(model=self.model, chat=Chat(template=self.chat_template))
            _ = proof.reading
        made: dict[str, Format] = {
            "sft": Sft(proof=proof), "prompt_completion": PromptCompletion(), "dpo": Dpo(proof=proof), "rlvr": Rlvr(),
            "documents": Documents(), "labels": Labels(), "steps": Steps(),
        }  # fmt: skip
        return made[self.to]
