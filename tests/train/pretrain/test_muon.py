"""Muon against the library's, against what orthogonal means, and at the edges."""

from __future__ import annotations

import pytest
import torch

from train.pretrain.muon import Muon, newton_schulz
from train.pretrain.optimisation import Optimisation
from train.pretrain.optimisers import make_optimisers, set_rate


def _group(*matrices: torch.Tensor, role: str = "hidden_matrix", multiplier: float = 1.0) -> dict[str, object]:
    params = [torch.nn.Parameter(matrix) for matrix in matrices]
    return {
        "params": params,
        "role": role,
        "lr": 0.01 * multiplier,
        "weight_decay": 0.1 / multiplier,
        "rate_multiplier": multiplier,
    }


@pytest.mark.parametrize("shape", [(16, 16), (8, 40), (40, 8), (1, 5)])
def test_singular_values_come_near_one_and_directions_stay(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    made = newton_schulz(matrix)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    held = torch.linalg.svdvals(made)[values / values.norm() > 0.02]  # the smallest need more than 5 iterations
    assert bool(((held > 0.5) & (held < 1.3)).all())
    turned = left.T @ made @ right.T
    assert torch.allclose(turned, torch.diag(turned.diagonal()), atol=1e-4)


def test_updates_are_those_of_the_library_but_for_its_bf16() -> None:
    start = torch.randn(24, 12, generator=torch.Generator().manual_seed(2))
    ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
    one = Muon([{"params": [ours]}], lr=0.02, weight_decay=0.1)
    other = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for step in range(4):
        gradient = torch.randn(24, 12, generator=torch.Generator().manual_seed(step))
        for parameter, optimiser in ((ours, one), (theirs, other)):
            parameter.grad = gradient.clone()
            optimiser.step()
    moved = (theirs - start).norm()
    assert (ours - theirs).norm() / moved < 0.02  # bf16 keeps 8 bits


def test_a_vector_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a parameter of shape \(3,\) is no matrix; use AdamW"):
        Muon([{"params": [torch.nn.Parameter(torch.zeros(3))]}], lr=0.1)


def test_muon_takes_hidden_matrices_and_adamw_the_rest() -> None:
    groups = [
        _group(torch.ones(4, 4)),
        _group(torch.ones(9, 4), role="embedding"),
        _group(torch.ones(4), role="vector"),
    ]
    muon, adamw = make_optimisers(groups, Optimisation(optimizer="muon", learning_rate=0.01))
    assert isinstance(muon, Muon)
    assert [one["role"] for one in muon.param_groups] == ["hidden_matrix"]
    assert [one["role"] for one in adamw.param_groups] == ["embedding", "vector"]


def test_a_schedule_keeps_each_groups_multiple_and_decay() -> None:
    groups = [_group(torch.ones(4, 4), multiplier=0.25), _group(torch.ones(9, 4), role="embedding")]
    settings = Optimisation(learning_rate=0.01)
    made = make_optimisers(groups, settings)
    set_rate(made, 0.002)
    assert [group["lr"] for group in made[0].param_groups] == [0.0005, 0.002]
    (muon, _) = make_optimisers(groups, Optimisation(optimizer="muon", learning_rate=0.01))
    set_rate([muon], 0.002)
    group = muon.param_groups[0]
    assert group["lr"] == 0.001  # a quarter for AdamW is a half for orthogonal updates
    assert group["lr"] * group["weight_decay"] == pytest.approx(0.002 * 0.1)
