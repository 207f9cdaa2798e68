"""A made folder of a mix, mix.json and mixture.json, of any domains: quick, and with every part that a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shards.store import write_json

Row = dict[str, Any]


def make(folder: Path, domains: Sequence[str], *, runs: int = 12, seed: int = 7) -> Row:
    """Write both files under `folder`; return what mix.json holds."""
    dice = np.random.default_rng(seed)
    weights = _named(domains, dice.dirichlet(np.full(len(domains), 2.0)))
    metrics = {f"loss/{name}": 3.0 + at / 10 for at, name in enumerate(domains)}
    predicted = {name: _interval(value) for name, value in metrics.items()}
    mixture = {
        "format": "gristmill-mixture-1",
        "weights": weights,
        "tokens": 1e9,
        "tokens_by_domain": {name: share * 1e9 for name, share in weights.items()},
        "epochs": {name: share * 2 for name, share in weights.items()},
        "level": 0.9,
        "objective": _interval(2.987654),
        "predicted": predicted,
        "minimised": {"weights": dict.fromkeys(metrics, 1.0), "worst": []},
        "natural": {"weights": _named(domains, np.full(len(domains), 1 / len(domains))), "objective": _interval(3.1)},
        "phases": [{"share": 0.8, "weights": weights}, {"share": 0.2, "weights": weights}],
    }
    first = next(iter(weights))
    design: list[Row] = [
        {"run": f"run-{at}", "weights": _named(domains, row), "objective": 3 + at / 10, "round": 1, "metrics": metrics}
        for at, row in enumerate(dice.dirichlet(np.ones(len(domains)), runs))
    ]
    pairs = [{"run": row["run"], "measured": row["objective"], "predicted": row["objective"] + 0.01} for row in design]
    whole = {
        "format": 1,
        "mixture": mixture,
        "stop": "the budget of 12 runs is spent",
        "objective": mixture["minimised"],
        "spent": {"runs": runs, "failed": {"run-x": "diverged"}, "flops": 1.5e15, "seconds": 75.0, "budget": runs},
        "rounds": [{"number": 1, "mixtures": runs, "why": ["far from all"] * runs, "seconds": 75.0, "best": 3.0}],
        "worth": {"gain": 0.02, "why": "10 more runs are expected to lower the loss by 0.02"},
        "law": {
            "why": "the least error",
            "choice": [
                {"law": "linear", "metric": name, "error": 0.2, "explained": None, "share": 0.0} for name in metrics
            ]
            + [{"law": "power", "metric": name, "error": 0.1, "explained": 0.9, "share": 1.0} for name in metrics],
        },
        "fit": {"objective": pairs, **dict.fromkeys(metrics, pairs)},
        "curves": {name: _curve(share) for name, share in weights.items()},
        "design": design,
        "optimum": {
            "value": 2.987654,
            "comparisons": [
                {"name": "natural", "value": 3.1, "excess": 0.112346, "keeps": True, "change": 0.2},
                {"name": "uniform", "value": 3.2, "excess": 0.212346, "keeps": False, "change": 0.3},
                {"name": "best run", "value": None, "excess": None, "keeps": None, "change": None},
            ],
            "prices": [
                {"constraint": f"max_epochs.{first}", "kind": "at most", "limit": 0.3, "price": 0.0417},
                {"constraint": "groups.text.floor", "kind": "at least", "limit": 0.2, "price": 0.01},
            ],
            "near": {
                "within": 0.01,
                "farthest": 0.15,
                "ranges": {name: {"low": share / 2, "high": min(1.0, share * 1.5)} for name, share in weights.items()},
            },
            "certificate": {"method": "interior point", "convex": True, "gap": 1e-9, "starts": 1, "agreed": 1},
            "sensitivity": [{"name": "linear", "change": 0.1, "loss": 0.004}],
        },
        "warnings": [f"runs: few tell of {first}"],
    }
    write(folder, whole)
    return whole


def write(folder: Path, whole: Mapping[str, Any]) -> None:
    write_json(str(folder / "mix.json"), whole)
    write_json(str(folder / "mixture.json"), whole["mixture"])


def _named(domains: Sequence[str], weights: Any) -> dict[str, float]:
    return dict(zip(domains, (float(weight) for weight in weights), strict=True))


def _interval(value: float) -> Row:
    return {"value": value, "low": value - 0.1, "high": value + 0.1}


def _curve(share: float) -> Row:
    """Allowed but for its last third."""
    along = sorted({*np.linspace(0.0, 0.6, 13).tolist(), share})
    value = [3 + (weight - share) ** 2 for weight in along]
    band = {"low": [one - 0.05 for one in value], "value": value, "high": [one + 0.05 for one in value]}
    return {"weight": along, "allowed": [weight <= max(0.4, share) for weight in along], "objective": band}
