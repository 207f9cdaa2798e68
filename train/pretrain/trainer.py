"""One optimiser step on one batch, the same whatever it is cut into: micro-batches, processes, precision.

How to use it, for pretraining, fine-tuning, proxies or a notebook:

    world = World.join()                                          # alone, or one of torchrun's processes
    trainer = Trainer(model, settings, world=world)               # settings: Optimisation or what derives from it
    for batch in batches:                                         # this process's rows of each step, any source
        done = trainer.step(batch, learning_rate=3e-3)            # done.loss: mean over ALL targets of the step

`model` is called as model(tokens, positions, documents) -> logits, like train.model.Transformer; a wrapper (peft's,
say) needs `groups`, as train.model.parameter_groups makes them. Parameters that need no gradient are neither updated
nor stored in `tensors()`. train.pretrain.loop.follow adds the rest of a run: schedule, checkpoints, exact resume, the
spike guard, evaluation and metrics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
import xxhash
from torch import Tensor, nn

from train.model.losses import losses_by_token, token_losses
from train.model.parametrisation import parameter_groups
from train.model.settings import ModelSettings
from train.pretrain.distributed import World, own_part, whole
from train.pretrain.optimisation import Optimisation
from train.pretrain.optimisers import Groups, make_optimisers, set_rate
from train.pretrain.rows import batch_rows, fill
from train.pretrain.state import NoTargetsError, TrainingError, load_tensors, stored_tensors

if TYPE_CHECKING:
    from train.feed.batch import Batch


# Entries of a micro-batch's logits where settings leave its size open. On a CPU what leaves the caches costs more than
# a further pass: 2,048 targets of 2,048 entries, say; a GPU wants 2^29 (1 GiB in bf16).
LOGITS = {"cpu": 1 << 22, "cuda": 1 << 29}


__all__ = ["Stepped", "Trainer", "TrainingError"]


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """What one step did. loss: nats a target, over all micro-batches and processes. applied: False where loss or
    gradient were not finite, and so no weight was changed. domains: {index: (sum of nats, targets)}."""

    step: int
    loss: float
    targets: int
    gradient_norm: float
    learning_rate: float
    applied: bool
    domains: dict[int, tuple[float, int]]


class Trainer:
    """A model with its optimisers in one process of a world.

    domains: how many domains batches have; their losses are told apart (at the cost of one more pass over the logits).
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Optimisation,
        *,
        world: World | None = None,
        groups: Groups | None = None,
        domains: int = 0,
    ) -> None:
        self.settings = settings
        self.world = world or World(device=next(model.parameters()).device)
        self.model = model.to(self.world.device)
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        on_gpu = self.world.device.type == "cuda"
        self.bf16 = settings.precision == "bf16" or (settings.precision == "auto" and on_gpu)
        sharding = ("full" if on_gpu else "none") if settings.sharding == "auto" else settings.sharding
        self.sharded = sharding == "full" and self.world.size > 1
        layers = _layers(model)
        if settings.compile:
            for module in layers or [model]:
                module.compile()
        names = None if groups is None else _names(model, groups)
        if self.sharded:
            self.world.shard(model, layers, bf16=self.bf16)
        if groups is None:
            groups = parameter_groups(model, settings.learning_rate, settings.weight_decay)
        elif names is not None:
            own = dict(model.named_parameters())  # sharding puts other tensors in the parameters' places
            groups = [
                {**group, "params": [own[name] for name in told]} for group, told in zip(groups, names, strict=True)
            ]
        self.optimisers = make_optimisers(groups, settings)
        self._domains = domains

    def step(self, batch: Batch, *, learning_rate: float) -> Stepped:
        """Forward, backward and update on this process's rows of one step's batch.

        Raises NoTargetsError where no target of the whole batch counts.
        """
        self.seed_step(batch.step)
        self.model.train()
        rows = torch.tensor([len(batch.tokens), int(batch.loss.sum())], dtype=torch.int64, device=self.world.device)
        most, targets = self._most_rows(rows[0]), int(self.world.sum(rows[1:])[0])
        if not targets:
            raise NoTargetsError(f"step {batch.step}: no target of the batch counts; look at the masks of its rows")
        sums = torch.zeros(1 + 2 * self._domains, dtype=torch.float64, device=self.world.device)
        for part in self._micro_batches(batch, most):
            self._backward(part, sums)
        if not self.sharded:
            self.world.sum_gradients(self.model.parameters())
        norm = self._clip(targets)
        loss = float(self.world.sum(sums)[0]) / targets
        applied = math.isfinite(loss) and math.isfinite(norm)
        if applied:
            set_rate(self.optimisers, learning_rate)
            for optimiser in self.optimisers:
                optimiser.step()
        self.model.zero_grad(set_to_none=True)
        told = sums[1:].reshape(2, -1).T.tolist()
        return Stepped(
            step=batch.step,
            loss=loss,
            targets=targets,
            gradient_norm=norm,
            learning_rate=learning_rate,
            applied=applied,
            domains={index: (total, int(count)) for index, (total, count) in enumerate(told) if count},
        )

    def logits(self, tokens: Tensor, positions: Tensor, documents: Tensor) -> Tensor:
        """The model's answer in the run's precision; on all processes at once where it is sharded."""
        with torch.autocast(self.world.device.type, dtype=torch.bfloat16, enabled=self.bf16):
            return cast(Tensor, self.model(tokens, positions, documents))

    def seed_step(self, step: int) -> None:
        """What is drawn in a step (dropout) follows from seed, step and process: there is no generator to store."""
        torch.manual_seed(xxhash.xxh3_64_intdigest(f"{self.settings.seed}/{step}/{self.world.rank}".encode()) >> 1)

    def _most_rows(self, own: Tensor) -> int:
        """The rows of the process that has most of this step: all must make as many forward passes."""
        if self.world.size == 1:
            return int(own)
        most = own.clone()
        torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
        return int(most)

    def _rows_of(self, width: int) -> int:
        """Rows of that width whose logits are of LOGITS entries."""
        found = (getattr(module, "settings", None) for module in self.model.modules())
        entries = next((one.vocab_size for one in found if isinstance(one, ModelSettings)), 1) * width
        return max(1, LOGITS[self.world.device.type] // entries)

    def _micro_batches(self, batch: Batch, most: int) -> Iterator[Batch]:
        size = min(self.settings.micro_batch_sequences or self._rows_of(batch.tokens.shape[1]), most)
        for start in range(0, most, size):
            part = batch_rows(batch, start, start + size)
            short = size - len(part.tokens)
            # Sharded or compiled, every process makes each pass, and of one shape: rows that count for nothing fill up.
            if short and (self.sharded or self.settings.compile):
                part = fill(part, short)
            if len(part.tokens):
                yield part

    def _backward(self, part: Batch, sums: Tensor) -> None:
        device = self.world.device
        tokens, mask = _tensor(part.tokens, device), _tensor(part.loss, device)
        positions, documents = _tensor(part.positions, device), _tensor(part.documents, device)
        logits = self.logits(tokens[:, :-1], positions[:, :-1], documents[:, :-1])
        total, _ = token_losses(logits, tokens[:, 1:], mask)
        total.backward()  # type: ignore[no-untyped-call]
        sums[0] += total.detach()
        if self._domains and part.domains is not None:
            losses = losses_by_token(logits.detach(), tokens[:, 1:])[mask].to(torch.float64)
            which = _tensor(part.domains, device)[:, 1:][mask].to(torch.int64)
            sums[1 : 1 + self._domains].index_add_(0, which, losses)
            sums[1 + self._domains :].index_add_(0, which, torch.ones_like(losses))

    def _clip(self, targets: int) -> float:
        """Make the summed gradients those of the mean loss, and bound their norm; the norm before that."""
        told = [one for one in self.model.parameters() if one.grad is not None]
        torch._foreach_mul_([one.grad for one in told if one.grad is not None], 1.0 / targets)
        norm = torch.nn.utils.get_total_norm([one.grad for one in told if one.grad is not None])
        norm = whole(norm)
        if self.settings.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(told, self.settings.clip_norm, norm)
        return float(norm)

    def is_finite(self) -> bool:
        """Whether all trained weights are numbers; the same answer in all processes."""
        told = [own_part(one) for one in self.model.parameters() if one.requires_grad]
        wrong = torch.stack([~torch.isfinite(one).all() for one in told]).sum()
        return not int(self.world.sum(wrong))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Whole tensors by name: what training changes in the model, and the optimisers' state. On all processes."""
        return stored_tensors(self.model, self.optimisers)

    def load(self, tensors: Iterable[tuple[str, Tensor]]) -> None:
        """Take over tensors that `tensors` gave, under any number of processes.

        Raises TrainingError when they are of another model or optimiser.
        """
        load_tensors(self.model, self.optimisers, tensors)


def _tensor(array: Any, device: torch.device) -> Tensor:
    return torch.as_tensor(array).to(device, non_blocking=True)


def _layers(model: nn.Module) -> list[nn.Module]:
    """The repeated blocks of a model, wherever it keeps them: what FSDP2 gathers and compile makes once."""
    found = [module for name, module in model.named_modules() if name.rsplit(".", 1)[-1] == "layers"]
    return list(found[0].children()) if found else []


def _names(model: nn.Module, groups: Groups) -> list[list[str]]:
    names = {id(one): name for name, one in model.named_parameters()}
    return [[names[id(one)] for one in group["params"]] for group in groups]
