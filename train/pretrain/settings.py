"""The recipe's `train:` section: a small decoder-only model, pretrained on a mixture of token shards."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from train.model.settings import ModelSettings
from train.pretrain.optimisation import FREE_TO_CHANGE, Count, Optimisation

Weight = Annotated[float, Field(ge=0)]
Epochs = Annotated[float, Field(gt=0)]
MaxEpochs = Epochs | dict[str, Epochs] | None
Packing = Literal["concat", "best_fit"]
PLAN_CHANGES = ("weights", "batch_sequences", "sequence_tokens", "packing", "overflow", "max_epochs")
BLOCKS, MOST_BLOCK_TOKENS = 1000, 1 << 16
Overflow = Literal["split", "crop", "drop"]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Change:
    """What holds from update `at_step` (from 0) on; None leaves a setting as it was.

    weights, batch_sequences, sequence_tokens, packing, overflow, max_epochs: a new segment of the plan, in which each
    domain goes on where it stopped. learning_rate, steps: the schedule's, from this step on.
    """

    at_step: int = Field(ge=0)
    weights: dict[str, Weight] | None = None
    batch_sequences: Count | None = None
    sequence_tokens: Annotated[int, Field(ge=2)] | None = None
    packing: Packing | None = None
    overflow: Overflow | None = None
    max_epochs: MaxEpochs = None
    learning_rate: Annotated[float, Field(gt=0)] | None = None
    steps: Count | None = None

    @property
    def of_plan(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in PLAN_CHANGES}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Pretrain(Optimisation):
    """Pretrain a Llama-like model on a mixture of domains; the settings of the loop are Optimisation's.

    layers, width, heads, key_value_heads, feed_forward_width, tie_embeddings, rope_theta: sizes of the model, see
        train.model.ModelSettings; the vocabulary is the tokens'. mup_base_width: the width that learning_rate was
        tuned at; None is the standard parametrisation.
    weights: share of the training tokens of every domain (they need not sum to 1; 0 leaves one out); None is natural,
        as many as it has.
    max_epochs: how often a domain may be repeated at most, one number or by domain; what a spent domain cannot give
        goes to the others by their weights.
    held_out: share of each domain's tokens that is never trained on, and that bits per byte are measured on.
    sequence_tokens: targets a row. batch_sequences: rows a step, over all processes.
    packing: concat cuts a stream of documents; best_fit keeps documents whole where they fit. overflow: what best_fit
        does with what fits no row: split, crop or drop. isolate: attention, positions and loss end where a document
        does.
    block_tokens: what keeps its inner order when a domain's tokens are shuffled. None is the power of two that gives
        the run some 1,000 blocks, at least 4 sequences (documents are cut at blocks' ends) and at most 65,536 tokens.
    steps, tokens: the length of the run, exactly one of them; tokens are rounded up to whole steps.
    evaluation_sequences: rows of held-out text a domain, at most, in whole documents; None takes all of it.
    changes: settings that change at given steps, in order.
    workers: processes of the loader; 0 loads in the training process.
    model_dtype: of the weights in OUT/model; training keeps float32 whatever it is.
    peak_flops: of a process's accelerator, per second; with it the metrics tell the share that is used (MFU).
    """

    name: ClassVar[str] = "train"
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("torch",)
    free: ClassVar[frozenset[str]] = FREE_TO_CHANGE | {"evaluation_sequences", "workers", "peak_flops"}
    """Settings that change nothing of a result."""

    layers: Count = 4
    width: Count = 128
    heads: Count = 4
    key_value_heads: Count | None = None
    feed_forward_width: Count | None = None
    tie_embeddings: bool = True
    rope_theta: float = Field(default=10_000.0, gt=0)
    mup_base_width: Count | None = None
    weights: dict[str, Weight] | None = None
    max_epochs: MaxEpochs = None
    held_out: float = Field(default=0.01, ge=0, lt=1)
    sequence_tokens: int = Field(default=1024, ge=2)
    batch_sequences: Count = 32
    packing: Packing = "concat"
    overflow: Overflow = "split"
    isolate: bool = True
    block_tokens: Count | None = None
    steps: Count | None = None
    tokens: Count | None = None
    evaluation_sequences: Count | None = 64
    changes: tuple[Change, ...] = ()
    workers: int = Field(default=0, ge=0)
    model_dtype: Literal["float32", "bfloat16"] = "float32"
    peak_flops: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _whole(self) -> Pretrain:
        if (self.steps is None) == (self.tokens is None):
            raise ValueError("steps, tokens: give exactly one of them, as the length of the run")
        if self.tokens is not None and any(change.steps for change in self.changes):
            raise ValueError("changes.steps: the length of this run is in tokens; change tokens instead")
        told = [change.at_step for change in self.changes]
        if told != sorted(set(told)):
            raise ValueError(f"changes: at_step {told} must rise, with one change a step")
        self._check_changes()
        if self.weights is not None and not any(self.weights.values()):
            raise ValueError("weights: all are 0; give at least one domain a weight")
        try:
            self.model(vocab_size=2)
        except ValidationError as error:
            raise ValueError(str(error.errors()[0]["ctx"]["error"])) from error
        return self

    def _check_changes(self) -> None:
        """Each change must change something, at a step that the run has when it is made."""
        end = self.steps or self.total_steps
        for change in self.changes:
            where = f"changes: at_step {change.at_step}"
            if change == Change(at_step=change.at_step):
                raise ValueError(f"{where} changes nothing; name a setting, or remove it")
            if change.at_step > end or (change.at_step == end and change.steps is None):
                raise ValueError(f"{where} is never reached: the run has {end} steps by then, numbered from 0")
            if change.steps is not None and change.steps < change.at_step:
                raise ValueError(
                    f"{where} has steps: {change.steps}, which are over by then; give {change.at_step} or more"
                )
            end = change.steps or end

    def model(self, vocab_size: int) -> ModelSettings:
        """The model's settings for a vocabulary."""
        changed = (one.sequence_tokens for one in self.changes if one.sequence_tokens is not None)
        return ModelSettings(
            vocab_size=vocab_size,
            layers=self.layers,
            width=self.width,
            heads=self.heads,
            key_value_heads=self.key_value_heads,
            feed_forward_width=self.feed_forward_width,
            tie_embeddings=self.tie_embeddings,
            rope_theta=self.rope_theta,
            mup_base_width=self.mup_base_width,
            max_positions=max([self.sequence_tokens, *changed]),
        )

    def plain(self) -> dict[str, Any]:
        """As JSON values, the way a settings file says them."""
        told: dict[str, Any] = TypeAdapter(Pretrain).dump_python(self, mode="json")
        return told

    @property
    def tokens_a_block(self) -> int:
        """block_tokens, worked out from the length of the run as it was planned first where it is None."""
        if self.block_tokens is not None:
            return self.block_tokens
        wanted = self.batch_tokens(-1) * self.steps_at(-1) // BLOCKS
        return max(4 * self.sequence_tokens, min(MOST_BLOCK_TOKENS, 1 << max(0, wanted.bit_length() - 1)))

    def batch_tokens(self, step: int) -> int:
        """Targets of the batch of a step, padding included: batch_sequences * sequence_tokens as they are then."""
        held = [change for change in self.changes if change.at_step <= step]
        rows = [self.batch_sequences, *(change.batch_sequences for change in held if change.batch_sequences)]
        width = [self.sequence_tokens, *(change.sequence_tokens for change in held if change.sequence_tokens)]
        return rows[-1] * width[-1]

    def steps_at(self, step: int) -> int:
        """The run's length in steps, as it is planned at a step: changes that come later do not count."""
        if self.steps is not None:
            return [self.steps, *(one.steps for one in self.changes if one.at_step <= step and one.steps)][-1]
        return self._steps_of_tokens()

    @property
    def total_steps(self) -> int:
        """Steps in all, changes counted."""
        end = self.steps_at(-1)
        for change in self.changes:
            if change.at_step <= end:
                end = self.steps_at(change.at_step)
        return end

    def learning_rate_at(self, step: int) -> float:
        told = [one.learning_rate for one in self.changes if one.at_step <= step and one.learning_rate]
        return [self.learning_rate, *told][-1]

    def _steps_of_tokens(self) -> int:
        """Whole steps that hold `tokens`, rounded up, through all changes of the batch."""
        left, step = self.tokens or 0, 0
        for change in self.changes:
            length = min(change.at_step - step, -(-left // self.batch_tokens(step)))
            left, step = left - length * self.batch_tokens(step), step + length
            if left <= 0:
                return step
        return step + -(-left // self.batch_tokens(step))


FREE = Pretrain.free | {"model_dtype"}
"""Settings that may differ between a run and its continuation."""
