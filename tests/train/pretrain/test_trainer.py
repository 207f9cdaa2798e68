"""One step: the same whatever the batch is cut into, right against a plain computation, and stored whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from train.pretrain.optimisation import Optimisation
from train.pretrain.rows import batch_rows, fill
from train.pretrain.trainer import Trainer, TrainingError

SETTINGS = Optimisation(learning_rate=0.01, warmup_steps=0, guard=None)


def _weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([one.detach().reshape(-1) for one in trainer.model.parameters()])


def _trained(model: torch.nn.Module, batches: Any, **settings: Any) -> tuple[Trainer, list[float]]:
    trainer = Trainer(model, replace(SETTINGS, **settings), domains=2)
    return trainer, [trainer.step(batch, learning_rate=0.01).loss for batch in batches]


def test_loss_and_gradient_norm_are_those_of_the_mean_over_all_targets(tiny: Any, made_batch: Any) -> None:
    batch, model = made_batch(), tiny()
    told = batch.torch()
    logits = model(told.inputs, told.positions[:, :-1], told.documents[:, :-1])
    loss = F.cross_entropy(logits[told.loss], told.targets[told.loss])
    loss.backward()
    norm = torch.nn.utils.get_total_norm([one.grad for one in model.parameters()])
    done = Trainer(tiny(), SETTINGS, domains=2).step(batch, learning_rate=0.01)
    assert done.targets == batch.target_count
    assert done.loss == pytest.approx(float(loss.detach()), rel=1e-6)
    assert done.gradient_norm == pytest.approx(float(norm), rel=1e-5)
    assert sum(total for total, _ in done.domains.values()) / done.targets == pytest.approx(done.loss, rel=1e-6)
    assert sum(count for _, count in done.domains.values()) == done.targets


# float32 sums in another order: 1e-5 of the weights after 4 steps is what rounding leaves
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("micro", [1, 2, 4, 5])
def test_micro_batches_of_any_size_train_as_the_whole_batch_does(
    tiny: Any, made_batch: Any, micro: int, optimizer: str
) -> None:
    batches = [made_batch(step) for step in range(4)]
    whole, losses = _trained(tiny(), batches, optimizer=optimizer)
    parts, others = _trained(tiny(), batches, optimizer=optimizer, micro_batch_sequences=micro)
    assert others == pytest.approx(losses, rel=1e-5)
    assert torch.allclose(_weights(whole), _weights(parts), rtol=1e-4, atol=1e-5)


def test_rows_that_count_for_nothing_change_nothing(tiny: Any, made_batch: Any) -> None:
    batch = made_batch()
    (plain, losses), (filled, others) = _trained(tiny(), [batch]), _trained(tiny(), [fill(batch, 3)])
    assert others == pytest.approx(losses, rel=1e-6)
    assert torch.allclose(_weights(plain), _weights(filled), atol=1e-5)


def test_training_lowers_the_loss(tiny: Any, made_batch: Any) -> None:
    for optimizer in ("adamw", "muon"):
        _, losses = _trained(tiny(), [made_batch(step % 3) for step in range(60)], optimizer=optimizer)
        assert losses[-1] < losses[0] - 1.0


def test_clipping_bounds_the_norm_and_tells_the_one_before(tiny: Any, made_batch: Any) -> None:
    model = tiny()
    seen: list[float] = []
    trainer = Trainer(model, replace(SETTINGS, clip_norm=0.01))
    trainer.optimisers[0].register_step_pre_hook(
        lambda *_: seen.append(float(torch.nn.utils.get_total_norm([one.grad for one in model.parameters()])))
    )
    assert trainer.step(made_batch(), learning_rate=0.01).gradient_norm > 0.1
    assert seen == pytest.approx([0.01], rel=1e-3)


def test_an_update_that_is_not_finite_is_not_applied(tiny: Any, made_batch: Any) -> None:
    model = tiny()
    trainer = Trainer(model, SETTINGS)
    before = _weights(trainer)
    hook = model.norm.register_forward_hook(lambda *a: a[2] * float("nan"))
    assert not trainer.step(made_batch(), learning_rate=0.01).applied
    assert torch.equal(_weights(trainer), before)
    hook.remove()
    assert trainer.step(made_batch(), learning_rate=0.01).applied


def test_a_batch_without_a_target_is_refused(tiny: Any, made_batch: Any) -> None:
    batch = made_batch(3)
    with pytest.raises(TrainingError, match="step 3: no target of the batch counts; look at the masks of its rows"):
        Trainer(tiny(), SETTINGS).step(replace(batch, loss=np.zeros_like(batch.loss)), learning_rate=0.01)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_stored_tensors_continue_bit_for_bit(tiny: Any, made_batch: Any, optimizer: str) -> None:
    batches = [made_batch(step) for step in range(6)]
    whole, _ = _trained(tiny(), batches, optimizer=optimizer)
    first, _ = _trained(tiny(), batches[:3], optimizer=optimizer)
    stored = [(name, tensor.clone()) for name, tensor in first.tensors()]
    second = Trainer(tiny(seed=9), replace(SETTINGS, optimizer=optimizer), domains=2)
    second.load(iter(stored))
    for batch in batches[3:]:
        second.step(batch, learning_rate=0.01)
    assert torch.equal(_weights(whole), _weights(second))


def test_frozen_parameters_are_neither_trained_nor_stored(tiny: Any, made_batch: Any) -> None:
    model = tiny()
    model.layers[0].requires_grad_(False)
    frozen = model.layers[0].mlp.up_proj.weight.clone()
    trainer, _ = _trained(model, [made_batch()])
    assert torch.equal(model.layers[0].mlp.up_proj.weight, frozen)
    assert not any("layers.0." in name for name, _ in trainer.tensors())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"width": 32}, r"model/embed_tokens.weight: \[61, 16\] in the checkpoint, \[61, 32\] in the model"),
        ({"layers": 3}, "the checkpoint lacks layers.2.input_layernorm.weight: it is of another model"),
        ({"layers": 1}, "the checkpoint has model/layers.1.* which this model has not"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tiny: Any, change: dict[str, int], text: str) -> None:
    tensors: Callable[[], Iterator[tuple[str, torch.Tensor]]] = Trainer(tiny(), SETTINGS).tensors
    with pytest.raises(TrainingError, match=text):
        Trainer(tiny(**change), SETTINGS).load(tensors())


def test_what_is_drawn_in_a_step_follows_from_seed_and_step(tiny: Any) -> None:
    trainer = Trainer(tiny(), SETTINGS)
    drawn = []
    for step in (4, 5, 4):
        trainer.seed_step(step)
        drawn.append(float(torch.rand(())))
    assert drawn[0] == drawn[2] != drawn[1]


def test_rows_of_a_batch_stay_together(made_batch: Any) -> None:
    part = batch_rows(made_batch(rows=5), 3, 9)
    assert part.rows == 2
    assert np.array_equal(part.tokens, made_batch(rows=5).tokens[3:])


def test_bf16_trains_on_a_cpu_with_float32_weights(tiny: Any, made_batch: Any) -> None:
    trainer, losses = _trained(tiny(), [made_batch(step % 3) for step in range(40)], precision="bf16")
    assert losses[-1] < losses[0] - 0.5
    assert all(one.dtype == torch.float32 for one in trainer.model.parameters())


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")  # the compiler warns of its own doings
def test_compiled_it_trains_as_it_does_otherwise(tiny: Any, made_batch: Any) -> None:
    if shutil.which("g++") is None:
        pytest.fail("torch.compile needs a C++ compiler on a CPU: apt-get install g++")
    batches = [made_batch(step) for step in range(4)]
    (plain, losses), (compiled, others) = _trained(tiny(), batches), _trained(tiny(), batches, compile=True)
    assert others == pytest.approx(losses, rel=1e-4)
    assert torch.allclose(_weights(plain), _weights(compiled), rtol=1e-3, atol=1e-4)
    assert [name for name, _ in plain.tensors()] == [name for name, _ in compiled.tensors()]
