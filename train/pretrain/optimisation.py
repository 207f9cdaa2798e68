"""How a model is trained, whatever the batches are: shared by pretraining, fine-tuning and proxies."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from train.pretrain.guard import SpikeGuard
from train.pretrain.rates import DecayShape, Schedule

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Beta = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Optimisation:
    """Optimiser, schedule, precision, checkpoints: the settings of the training loop itself.

    micro_batch_sequences: sequences a forward pass and process; a step's batch is cut into as many as it takes. The
        loss is divided by the whole batch's number of targets over all micro-batches and processes, so that neither
        changes what is trained. None is as many as keep the logits small (train.pretrain.trainer.LOGITS).
    optimizer: adamw, or muon for the hidden matrices with adamw for the rest (train.pretrain.muon).
    learning_rate: the peak, of the base width under muP. OLMo-core's proxy ladder uses 0.0047 * (N / 108e6)^(-1/3) / 2
        for N parameters. betas, epsilon: of AdamW. momentum: of Muon.
    weight_decay: decoupled, on matrices only (no embedding, no gain). clip_norm: bound of the global gradient norm;
        None does not clip.
    schedule: wsd (warm-up, stable, decay) or cosine. warmup_steps: linear warm-up. decay_share: share of the steps that
        wsd decays in. decay_shape: linear, cosine or minus_sqrt (1 - sqrt(r)). final_share: the schedule's floor, as a
        share of learning_rate. Sources: train.pretrain.rates.
    precision: bf16 is autocast over float32 weights; auto is bf16 on GPUs and fp32 on CPUs. compile: torch.compile.
    sharding: how processes share the work. full is FSDP2 (each holds a part of weights and optimiser state), none keeps
        a replica in each and adds their gradients; auto is full on GPUs and none on CPUs.
    checkpoint_every_steps: None writes one at the end only. keep_checkpoints: the newest that stay; None keeps all.
    evaluate_every_steps: None evaluates at the end only.
    guard: the loss-spike guard; None switches it off. It needs a checkpoint to return to, so there is one at step 0.
    seed: of the initial weights, the order of data, and of dropout where a model has some.
    threads: of a process on a CPU; None leaves PyTorch's choice. Sums on a CPU depend on it in their last bits.
    """

    micro_batch_sequences: Count | None = None
    optimizer: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = Field(default=3e-3, gt=0, allow_inf_nan=False)
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    epsilon: float = Field(default=1e-8, gt=0, allow_inf_nan=False)
    momentum: Beta = 0.95
    weight_decay: float = Field(default=0.1, ge=0, allow_inf_nan=False)
    clip_norm: float | None = Field(default=1.0, gt=0, allow_inf_nan=False)
    schedule: Schedule = "wsd"
    warmup_steps: int = Field(default=100, ge=0)
    decay_share: Share = 0.1
    decay_shape: DecayShape = "minus_sqrt"
    final_share: Share = 0.0
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    compile: bool = False
    sharding: Literal["auto", "full", "none"] = "auto"
    checkpoint_every_steps: Count | None = 1000
    keep_checkpoints: Count | None = 3
    evaluate_every_steps: Count | None = 1000
    guard: SpikeGuard | None = Field(default_factory=SpikeGuard)
    seed: int = Field(default=0, ge=0, lt=1 << 63)
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None

    @model_validator(mode="after")
    def _reachable(self) -> Optimisation:
        if self.guard is not None and self.guard.max_rollbacks and (self.keep_checkpoints or 2) < 2:
            raise ValueError(
                "keep_checkpoints: 1 leaves the guard none from before a spike; keep 2 or more, or set guard: null"
            )
        return self


# What may differ between a run and its continuation: none of it changes what is trained, beyond float rounding.
FREE_TO_CHANGE = frozenset(
    {
        "micro_batch_sequences",
        "compile",
        "sharding",
        "checkpoint_every_steps",
        "keep_checkpoints",
        "evaluate_every_steps",
        "guard",
        "threads",
    }
)
