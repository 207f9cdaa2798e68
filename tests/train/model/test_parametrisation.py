"""muP: groups and multipliers as documented, activations flat over widths, and the learning rate that transfers."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import torch

from train.model.coordinates import coordinate_check, growth
from train.model.losses import token_losses
from train.model.parametrisation import parameter_groups
from train.model.settings import ModelSettings
from train.model.transformer import Transformer


def small(**changes: object) -> ModelSettings:
    shape = {"vocab_size": 64, "layers": 2, "width": 32, "heads": 2, "tie_embeddings": False}
    return ModelSettings(**(shape | changes))  # type: ignore[arg-type]


def test_groups_hold_every_parameter_once_by_role():
    model = Transformer(small(query_key_value_bias=True))
    groups = parameter_groups(model, 0.01, 0.1)
    assert [group["role"] for group in groups] == ["hidden_matrix", "embedding", "vector", "readout"]
    told = [weight for group in groups for weight in group["params"]]
    assert {id(weight) for weight in told} == {id(weight) for weight in model.parameters()}
    assert len(told) == len(list(model.parameters()))
    assert all(weight.ndim == 2 for weight in groups[0]["params"])
    assert {name.rsplit(".", 2)[-2] for name in groups[0]["names"]} == {
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    }  # fmt: skip
    assert {(group["lr"], group["rate_multiplier"]) for group in groups} == {(0.01, 1.0)}
    assert [group["weight_decay"] for group in groups] == [0.1, 0.0, 0.0, 0.1]
    torch.optim.AdamW(groups)


def test_a_tied_readout_is_in_the_group_of_the_embedding_and_frozen_weights_in_none():
    model = Transformer(small(tie_embeddings=True))
    model.layers[0].requires_grad_(False)
    groups = {group["role"]: group["names"] for group in parameter_groups(model, 0.01, 0.1)}
    assert groups["embedding"] == ("embed_tokens.weight",)
    assert "readout" not in groups
    assert not any("layers.0." in name for names in groups.values() for name in names)


def test_hidden_rates_fall_with_width_and_their_decay_a_step_does_not():
    groups = {group["role"]: group for group in parameter_groups(Transformer(small(mup_base_width=8)), 0.01, 0.1)}
    hidden = groups.pop("hidden_matrix")
    assert (hidden["lr"], hidden["rate_multiplier"]) == (0.0025, 0.25)
    assert hidden["lr"] * hidden["weight_decay"] == pytest.approx(0.01 * 0.1)
    assert {group["lr"] for group in groups.values()} == {0.01}
    muon = parameter_groups(Transformer(small(mup_base_width=8)), 0.01, 0.1, matrix_update="orthogonal")
    assert (muon[0]["lr"], muon[0]["weight_decay"]) == (0.01, 0.1)


def test_groups_see_through_wrappers_and_ask_for_settings_where_there_are_none():
    wrapped = torch.nn.ModuleDict({"_orig_mod": Transformer(small())})
    with pytest.raises(ValueError, match="pass settings"):
        parameter_groups(wrapped, 0.01, 0.1)
    groups = parameter_groups(wrapped, 0.01, 0.1, settings=small())
    assert [len(group["params"]) for group in groups] == [14, 1, 5, 1]


@pytest.mark.parametrize("tied", [True, False])
def test_at_the_base_width_mup_is_the_standard_parametrisation(tied):
    plain, transferred = small(tie_embeddings=tied), small(tie_embeddings=tied, mup_base_width=32)
    tokens = torch.arange(20).reshape(2, 10)
    assert torch.equal(Transformer(plain)(tokens), Transformer(transferred)(tokens))
    rates = [
        [(g["lr"], g["weight_decay"]) for g in parameter_groups(Transformer(s), 1e-3, 0.1)]
        for s in (plain, transferred)
    ]
    assert rates[0] == rates[1]


@pytest.mark.parametrize("changes", [{}, {"tie_embeddings": True}, {"mup_base_head_width": 16, "zero_readout": True}])
def test_activations_stay_flat_over_widths_under_mup_and_grow_without(changes):
    widths = (32, 64, 128, 256)
    table = coordinate_check(small(mup_base_width=32, **changes), widths, steps=5, seeds=2)
    flat = growth(table, 5)
    assert set(flat) == {
        "embed_tokens",
        "lm_head",
        *(f"layers.{i}.{part}" for i in (0, 1) for part in ("self_attn", "mlp")),
    }
    # Logits keep a trace of the start, which shrinks as width^-1/2, unless the readout starts at zero.
    bounds = {} if "zero_readout" in changes else {"lm_head": 0.25}
    assert {part: slope for part, slope in flat.items() if abs(slope) > bounds.get(part, 0.15)} == {}
    standard = {name: value for name, value in changes.items() if not name.startswith("mup")}
    grown = growth(coordinate_check(small(**standard), widths, steps=5, seeds=2), 5)
    assert min(grown["lm_head"], grown["layers.0.mlp"], grown["layers.1.mlp"]) > 0.3


RATES = tuple(2.0**power for power in range(-10, -4))
WIDTHS, BASE = (16, 48, 128), 128
STEPS, ROWS, SLOTS, SEEDS = 60, 8, 64, 2


def final_loss(settings: ModelSettings, text: np.ndarray, rate: float, seed: int) -> float:
    """The loss on held-out bytes after training with Adam and a rate that falls to zero."""
    model = Transformer(settings, seed=seed)
    groups = parameter_groups(model, rate, 0.0)
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-12)
    held_out, trained = text[: len(text) // 8], text[len(text) // 8 :]

    def loss_of(source: np.ndarray, rows: int, random: np.random.Generator) -> torch.Tensor:
        starts = random.integers(0, len(source) - SLOTS - 1, rows)[:, None]
        tokens = torch.from_numpy(source[starts + np.arange(SLOTS + 1)].astype(np.int64))
        total, count = token_losses(model(tokens[:, :-1]), tokens[:, 1:], torch.ones_like(tokens[:, 1:]) > 0)
        return total / count

    random = np.random.default_rng(seed)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = rate * group["rate_multiplier"] * (1 - step / STEPS)
        loss_of(trained, ROWS, random).backward()
        optimiser.step()
        optimiser.zero_grad()
    with torch.no_grad():
        return loss_of(held_out, 128, np.random.default_rng(0)).item()


@pytest.mark.heavy
def test_the_best_learning_rate_transfers_over_three_widths_under_mup_and_not_without(shared):
    with gzip.open(shared / "text" / "books_en.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line, _ in zip(lines, range(60), strict=False)]
    text = np.frombuffer("".join(texts).encode()[: 1 << 20], dtype=np.uint8)
    found: dict[tuple[str, int], list[float]] = {}
    for name, base in (("muP", BASE), ("standard", None)):
        for width in WIDTHS:
            settings = small(vocab_size=256, width=16, heads=1, mup_base_width=base).at_width(width)
            same = found.get(("muP", width)) if width == BASE else None  # there both are one
            found[name, width] = same or [
                float(np.mean([final_loss(settings, text, rate, seed) for seed in range(SEEDS)])) for rate in RATES
            ]
    print("\nloss by parametrisation, width and rate:", *(f"2^{round(np.log2(rate))}" for rate in RATES))
    for (name, width), losses in found.items():
        print(f"{name:9} {width:4}", *(f"{loss:.3f}" for loss in losses))
    best = {key: int(np.argmin(losses)) for key, losses in found.items()}
    transferred, standard = ([best[name, width] for width in WIDTHS] for name in ("muP", "standard"))
    assert max(transferred) - min(transferred) <= 1
    assert standard[0] - standard[-1] >= 2
    # What a narrow model's rate costs the widest one: little under muP, much without.
    cost = {
        name: found[name, WIDTHS[-1]][best[name, WIDTHS[0]]] - min(found[name, WIDTHS[-1]])
        for name in ("muP", "standard")
    }
    assert cost["muP"] < 0.05
    assert cost["standard"] > 0.15
