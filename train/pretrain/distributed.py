"""Processes that train one model together: joined by torchrun's environment, FSDP2 or replicas, over NCCL or gloo.

World.join()                    this process's place; alone where torchrun did not start it
world.shard(model, precision)   FSDP2: each process holds a part of every weight and of its optimiser state
world.sum(tensor)               over all processes
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:  # seconds to import, and one process alone needs none of it
    from torch.distributed.device_mesh import DeviceMesh


@dataclass(frozen=True, kw_only=True)
class World:
    """One of `size` processes. rank: among all of them; device: where its model lives."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    mesh: DeviceMesh | None = None

    @classmethod
    def join(cls, device: Literal["auto", "cpu", "cuda"] = "auto") -> World:
        """Join the processes that torchrun started (RANK, WORLD_SIZE, LOCAL_RANK); alone where there are none.

        device auto: a GPU a process where there is one, else the CPU. leave() at the end.
        """
        on_gpu = torch.cuda.is_available() if device == "auto" else device == "cuda"
        local = int(os.environ.get("LOCAL_RANK", "0"))
        place = torch.device("cuda", local) if on_gpu else torch.device("cpu")
        if on_gpu:
            torch.cuda.set_device(place)
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls(device=place)
        from torch.distributed.device_mesh import init_device_mesh

        if not dist.is_initialized():
            dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo")
        return cls(rank=dist.get_rank(), size=size, device=place, mesh=init_device_mesh(place.type, (size,)))

    def leave(self) -> None:
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all processes, the same bits in each; `values` itself, changed in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            dist.barrier()

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up replicas' gradients, in one message; a parameter that had none in this process counts as 0."""
        if self.size == 1:
            return
        told = [one for one in parameters if one.requires_grad]
        for one in told:
            if one.grad is None:
                one.grad = torch.zeros_like(one)
        gradients = [one.grad for one in told if one.grad is not None]
        flat = self.sum(torch.cat([gradient.reshape(-1) for gradient in gradients]))
        for gradient, part in zip(gradients, torch.split(flat, [one.numel() for one in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def shard(self, model: nn.Module, layers: Iterable[nn.Module], *, bf16: bool) -> None:
        """FSDP2: shard each of `layers` and what else the model has, in place. Gradients are summed, not averaged.

        bf16: weights are gathered and used in bf16; gradients are reduced, and weights kept, in float32.
        """
        from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

        assert self.mesh is not None, "one process has nothing to shard"
        kinds: dict[str, Any] = {"param_dtype": torch.bfloat16, "reduce_dtype": torch.float32} if bf16 else {}
        for module in (*layers, model):
            fully_shard(module, mesh=self.mesh, mp_policy=MixedPrecisionPolicy(**kinds))
        for module in model.modules():
            if isinstance(module, FSDPModule):
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)


def is_part(tensor: Tensor) -> bool:
    """Whether a tensor is this process's part of a sharded one (a DTensor)."""
    return hasattr(tensor, "full_tensor")


def whole(tensor: Tensor) -> Tensor:
    """The tensor that a shard is a part of; on all processes at once. Another tensor is returned as it is."""
    own: Any = tensor.detach()
    return cast(Tensor, own.full_tensor() if is_part(tensor) else own)


def own_part(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor."""
    own: Any = tensor.detach()
    return cast(Tensor, own.to_local() if is_part(tensor) else own)


def part_like(tensor: Tensor, like: Any) -> Tensor:
    """This process's part of a whole tensor, sharded as `like` is; the tensor itself where `like` is whole."""
    tensor = tensor.to(like.device)
    if not is_part(like):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)
