"""Repetition: a law of its own on published runs that repeat their tokens, and the discount inside mixture laws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.csv
import pytest

from mixing.laws import law_class
from mixing.laws.repetition import Repetition
from mixing.laws.repetition_aware import RepetitionAware
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.observations.repetition import effective_tokens


def datablations(shared: Path) -> Observations:
    """141 runs on C4 of 7M to 8.7B parameters and 1 to 9,000 epochs."""
    table = pyarrow.csv.read_csv(shared / "mixing" / "repetition" / "datablations.csv")
    held = {name: np.asarray(table[name].to_pylist()) for name in table.column_names}
    points = Points.of(
        ("c4",), np.ones((len(table), 1)), parameters=held["params"], tokens=held["tokens"],
        unique_tokens=held["unique_tokens"][:, None],
    )  # fmt: skip
    return Observations.of(points, ("validation_loss",), held["val_loss"], runs=held["name"].tolist())


def published(points: Points) -> Floats:
    """The published constants: 521/N'^.353 + 1488/D'^.353 + 1.87, R*_D 15.39, R*_N 5.31."""
    best_size = (521 / 1488) ** (1 / 0.353) * points.unique_tokens[:, 0]
    used = np.minimum(points.parameters, best_size)
    parameters = used * (1 - 5.31 * np.expm1(-(points.parameters / used - 1) / 5.31))
    tokens = effective_tokens(points.tokens, points.unique_tokens[:, 0])
    return np.asarray(521 / parameters**0.353 + 1488 / tokens**0.353 + 1.87)


def by_configuration(points: Points, folds: int, seed: int) -> npt.NDArray[np.int64]:
    """[n]: runs of one size, length and data that differ by their seeds are held out together."""
    configurations = np.stack([points.parameters, points.tokens, points.unique_tokens[:, 0]], axis=1)
    _, which = np.unique(configurations, axis=0, return_inverse=True)
    return np.asarray((np.random.default_rng(seed).permutation(which.max() + 1) % folds)[which.ravel()], np.int64)


def explained(told: Floats, seen: Floats) -> float:
    return float(1 - ((told - seen) ** 2).sum() / ((seen - seen.mean()) ** 2).sum())


def domains_at(unique: Floats, tokens: float = 4e9, runs: int = 6) -> Points:
    weights = np.random.default_rng(2).dirichlet(np.ones(3), runs)
    return Points.of(("a", "b", "c"), weights, parameters=1e8, tokens=tokens, unique_tokens=unique)


def runs_at_scales() -> Observations:
    random = np.random.default_rng(5)
    weights, sizes = random.dirichlet(np.ones(3), 30), np.resize([1e7, 4e7, 1e8], 30)
    points = Points.of(("a", "b", "c"), weights, parameters=sizes, tokens=20 * sizes * np.resize([1, 3], 30))
    losses = 1 + (weights[:, 0] ** 0.5 + 0.3) ** -0.5 + 20 * points.tokens**-0.15
    return Observations.of(points, ("x", "y"), np.stack([losses, losses[::-1]], axis=1))


def test_runs_that_repeat_are_told_better_than_by_published_laws(shared: Path) -> None:
    """Loss below 4, five folds. The reference, on 229 runs: R2 .63, MAE .245; refitted .79, .126, median .065."""
    seen = datablations(shared)
    values, points = seen.values[:, 0], seen.points
    below = values < 4
    law = Repetition.fit(seen)
    errors, shares = [], []
    for seed in range(3):
        told = law.held_out(seen, by_configuration(points, 5, seed))[0][:, 0]
        errors.append(np.abs(told - values)[below])
        shares.append(explained(told[below], values[below]))
    assert np.mean(shares) > 0.94
    assert np.mean(errors) < 0.075
    assert np.median(errors) < 0.045
    old = published(points)[below]
    assert explained(old, values[below]) < 0.8
    assert np.abs(old - values[below]).mean() > 0.2


def test_a_fold_fitted_from_the_start_tells_what_held_out_tells(shared: Path) -> None:
    seen = datablations(shared)
    folds = by_configuration(seen.points, 5, 0)
    anew = Repetition.fit(seen.rows(folds != 0)).mean(seen.points.rows(folds == 0))
    np.testing.assert_allclose(Repetition.fit(seen).held_out(seen, folds)[0][folds == 0], anew, rtol=0.05)


def test_the_repetition_law_without_repeats_is_chinchillas(shared: Path) -> None:
    seen = datablations(shared)
    law = Repetition.fit(seen)
    fresh = Points.of(
        ("c4",), np.ones((2, 1)), parameters=1e9, tokens=2e10, unique_tokens=np.array([[np.inf], [np.nan]])
    )
    repeated = replace(fresh, unique_tokens=np.full((2, 1), 4e8))
    assert np.ptp(law.mean(fresh)) == 0
    assert (law.mean(repeated) > law.mean(fresh) + 0.1).all()


@pytest.mark.parametrize("name", ["joint_shared_power", "joint_additive", "chinchilla", "shared_power", "linear"])
def test_slopes_through_the_discount_are_those_of_differences(name: str) -> None:
    seen = runs_at_scales()
    aware = RepetitionAware(law_class(name).fit(seen), {"a": 6.0, "b": 0.0})
    points = domains_at(np.array([3e8, 6e8, np.inf]))
    slopes = aware.gradient(points)
    for place in range(3):
        step = np.zeros(3)
        step[place] = 1e-6
        up, down = (aware.mean(replace(points, weights=points.weights + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, :, place], (up - down) / 2e-6, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["joint_shared_power", "shared_power"])
def test_without_repeats_a_law_is_asked_as_it_is(name: str) -> None:
    """Its slopes are the same along the simplex: off it a scaled law counts tokens, too."""
    law = law_class(name).fit(runs_at_scales())
    for points in (domains_at(np.array([np.inf, np.nan, 1e12])), domains_at(np.full(3, 1e6), tokens=np.nan)):
        if np.isnan(points.tokens[0]) and law.uses_scale:
            continue
        np.testing.assert_allclose(RepetitionAware(law).mean(points), law.mean(points))
        ours, theirs = RepetitionAware(law).gradient(points), law.gradient(points)
        ours, theirs = (slopes - slopes.mean(axis=2, keepdims=True) for slopes in (ours, theirs))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_one_domain_repeated_is_muennighoffs_law() -> None:
    seen = runs_at_scales()
    alone = Points.of(("a",), np.ones((30, 1)), parameters=seen.points.parameters, tokens=seen.points.tokens)
    law = law_class("joint_shared_power").fit(Observations.of(alone, ("x",), seen.values[:, 0]))
    repeated = Points.of(("a",), np.ones((1, 1)), parameters=1e8, tokens=8e9, unique_tokens=1e9)
    fresh = Points.of(("a",), np.ones((1, 1)), parameters=1e8, tokens=effective_tokens(8e9, 1e9))
    np.testing.assert_allclose(RepetitionAware(law).mean(repeated), law.mean(fresh))


@pytest.mark.parametrize("name", ["joint_shared_power", "effective_tokens", "joint_additive"])
def test_a_scarce_domain_is_worth_less_and_a_half_life_of_its_own_counts(name: str) -> None:
    law = law_class(name).fit(runs_at_scales())
    points = domains_at(np.array([2e7, np.inf, np.inf]))
    fresh, usual, tough = (
        told.mean(points)[:, 0] for told in (law, RepetitionAware(law), RepetitionAware(law, {"a": 1e9}))
    )
    assert (usual > fresh).all()
    assert (tough <= usual).all()
    np.testing.assert_allclose(tough, fresh, rtol=1e-4)


def test_laws_are_fitted_to_what_repeated_tokens_are_worth() -> None:
    """Losses of D' only: with the discount the law explains them, without it does not."""
    seen = runs_at_scales()
    scarce = replace(seen.points, unique_tokens=np.tile([1e7, np.inf, np.inf], (30, 1)))
    total = scarce.tokens * scarce.weights[:, 1:].sum(axis=1) + effective_tokens(
        scarce.tokens * scarce.weights[:, 0], 1e7
    )
    runs = Observations.of(scarce, ("x",), 1.5 + 300 * total**-0.3)
    aware, plain = RepetitionAware.fit(runs, law="chinchilla"), law_class("chinchilla").fit(runs)
    ours, theirs = (np.abs(law.mean(scarce) / runs.values - 1).mean() for law in (aware, plain))
    assert ours < 0.005 < theirs


@pytest.mark.parametrize(("half_life", "told"), [({"z": 3.0}, "no domain 'z'"), (-1.0, "give repeats, 0 or more")])
def test_a_half_life_that_cannot_be_is_told(half_life: dict[str, float] | float, told: str) -> None:
    with pytest.raises(MixingError, match=told):
        RepetitionAware(law_class("linear").fit(runs_at_scales()), half_life)


def test_a_mixture_of_domains_without_tokens_is_told() -> None:
    aware = RepetitionAware(law_class("joint_additive").fit(runs_at_scales()))
    with pytest.raises(MixingError, match="without a token"):
        aware.mean(domains_at(np.zeros(3)))
