"""A trainer's tensors by name: whole, whatever the processes, so that any other number of them can go on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from train.pretrain.distributed import part_like, whole


class TrainingError(ValueError):
    """A run that cannot be trained as asked: one line that says where, what is wrong, and what would be right."""


class NoTargetsError(TrainingError):
    """A step, or a run, in which nothing is predicted."""


def stored_tensors(model: nn.Module, optimisers: Sequence[Optimizer]) -> Iterator[tuple[str, Tensor]]:
    """model/NAME of trained parameters and stored buffers, then optimizer/NAME/KEY. On all processes at once."""
    for name, tensor in _of_model(model):
        yield f"model/{name}", whole(tensor)
    for optimiser in optimisers:
        for name, one in _named(model, optimiser):
            for key, value in sorted(optimiser.state.get(one, {}).items()):
                yield f"optimizer/{name}/{key}", whole(value)


@torch.no_grad()
def load_tensors(model: nn.Module, optimisers: Sequence[Optimizer], tensors: Iterable[tuple[str, Tensor]]) -> None:
    """Put what stored_tensors gave where it was. Raises TrainingError when it is of another model or optimiser."""
    stored = dict(_of_model(model))
    parameters = {name: (optimiser, one) for optimiser in optimisers for name, one in _named(model, optimiser)}
    for optimiser in optimisers:
        optimiser.state.clear()
    missing = set(stored)
    for full, tensor in tensors:
        kind, _, name = full.partition("/")
        name, key = (name, "") if kind == "model" else name.rsplit("/", 1)
        if name not in (stored if kind == "model" else parameters):
            raise TrainingError(f"the checkpoint has {full}, which this model has not: its settings were others")
        like = stored[name] if kind == "model" else parameters[name][1]
        if tensor.ndim and tensor.shape != like.shape:
            raise TrainingError(f"{full}: {list(tensor.shape)} in the checkpoint, {list(like.shape)} in the model")
        if kind == "model":
            like.copy_(part_like(tensor, like))
            missing.discard(name)
        else:
            optimiser, one = parameters[name]
            optimiser.state[one][key] = part_like(tensor, one) if tensor.ndim else _count(tensor, one, optimiser)
    if missing:
        raise TrainingError(f"the checkpoint lacks {sorted(missing)[0]}: it is of another model")


def _count(tensor: Tensor, like: Tensor, optimiser: Optimizer) -> Tensor:
    """AdamW's count of steps: on the GPU where the optimiser is fused, else on the CPU."""
    on_device = like.is_cuda and bool(optimiser.defaults.get("fused"))
    return tensor.to(like.device) if on_device else tensor.clone()


def _of_model(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    kept = model.state_dict(keep_vars=True)
    yield from ((name, one) for name, one in model.named_parameters() if one.requires_grad)
    yield from ((name, one) for name, one in model.named_buffers() if name in kept)


def _named(model: nn.Module, optimiser: Optimizer) -> list[tuple[str, nn.Parameter]]:
    own = {id(one) for group in optimiser.param_groups for one in group["params"]}
    return [(name, one) for name, one in model.named_parameters() if id(one) in own]
