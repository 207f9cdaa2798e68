"""Laws in (w, N, D): derivatives, degenerate input, and published runs of four sizes, held out by mixture and size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixing.laws import law_class
from mixing.laws.joint_law import JointLaw
from mixing.laws.joint_terms import FLOOR, Batch, Inputs
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points

NAMES = ("chinchilla", "joint_additive", "joint_power", "effective_tokens", "joint_shared_power", "repetition")


def joint(name: str) -> type[JointLaw]:
    found = law_class(name)
    assert issubclass(found, JointLaw)
    return found


def slimpajama(shared: Path) -> Observations:
    """60 mixtures at 122M and 310M parameters, 40 of them at 680M and 937M; 11 checkpoints a run; 8 losses."""
    table = pyarrow.csv.read_csv(shared / "mixing" / "slimpajama" / "runs.csv")
    domains = [name.removeprefix("weight_") for name in table.column_names if name.startswith("weight_")]
    metrics = [name for name in table.column_names if name.endswith("_loss")]
    held = {name: np.asarray(table[name].to_pylist(), np.float64) for name in table.column_names}
    weights = np.stack([held[f"weight_{name}"] for name in domains], axis=1)
    points = Points.of(
        domains, weights / weights.sum(axis=1, keepdims=True), parameters=held["model_size"], tokens=held["n_tokens"]
    )
    mixtures = np.unique(weights.round(6), axis=0, return_inverse=True)[1].ravel()
    runs = [f"{mixture:02d}-{size:.0f}" for mixture, size in zip(mixtures, held["model_size"], strict=True)]
    return Observations.of(points, metrics, np.stack([held[name] for name in metrics], axis=1), runs=runs)


def of_mixtures(observations: Observations, chosen: Any) -> npt.NDArray[np.bool_]:
    return np.isin([int(run.split("-")[0]) for run in observations.runs], chosen)


def errors(law: JointLaw, held_out: Observations) -> Floats:
    """[k] mean relative error of each metric, percent."""
    return np.asarray(np.nanmean(np.abs(law.mean(held_out.points) / held_out.values - 1), axis=0) * 100)


def world(
    domains: tuple[str, ...] = ("a", "b", "c"), runs: int = 24, seed: int = 0, noise: float = 0.0
) -> Observations:
    """Runs of a known law at three sizes."""
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(len(domains)), runs)
    sizes = np.resize([1e7, 3e7, 1e8], runs)
    tokens = sizes * np.resize([20, 40, 60, 80], runs)
    helps = np.stack([1 + 2 * weights[:, 0] ** 0.5, 0.3 + weights[:, -1] ** 0.5], axis=1)
    losses = 1.5 * helps**-0.4 + (8 * helps**-0.2) * sizes[:, None] ** -0.15 + 50 * tokens[:, None] ** -0.2
    losses *= np.exp(noise * random.normal(size=losses.shape))
    return Observations.of(Points.of(domains, weights, parameters=sizes, tokens=tokens), ("x", "y"), losses)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_by_constant_and_by_weight_are_those_of_differences(name: str) -> None:
    law = joint(name)
    random = np.random.default_rng(3)
    weights = random.dirichlet(np.ones(4), 9)
    weights[0, 1], weights[1, 2] = 0.0, FLOOR / 3
    sizes, unique = 1e8 * np.exp(random.normal(size=(2, 9))), 1e7 * np.exp(random.normal(size=(9, 4)))
    unique[2] = np.inf
    points = Points(domains=tuple("abcd"), weights=weights, parameters=sizes[0], tokens=sizes[1], unique_tokens=unique)
    inputs = Inputs(weights, np.log(sizes[0] / 1e8), np.log(sizes[1] / 1e8), points)
    prior = law._prior(2, 4)
    theta = prior.mean + 0.3 * random.normal(size=prior.mean.shape) * np.minimum(prior.deviation, 1)

    def batch(constants: Floats, mixtures: Floats = weights) -> Batch:
        made = Batch(law.scalars, law.blocks, constants, inputs._replace(weights=mixtures))
        law.terms(made)
        return made

    here = batch(theta)
    for place in range(theta.shape[1]):
        step = np.zeros(theta.shape[1])
        step[place] = 1e-6
        slope = (batch(theta + step).value - batch(theta - step).value) / 2e-6
        np.testing.assert_allclose(here.jacobian[..., place], slope, rtol=1e-5, atol=1e-8)
    for place in range(4):
        step = np.zeros(4)
        step[place] = 1e-9
        slope = (batch(theta, weights + step).value - batch(theta, weights - step).value) / 2e-9
        np.testing.assert_allclose(here.by_weight[..., place], slope, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_runs_and_of_domains_does_not_matter(name: str) -> None:
    seen = world(noise=0.01)
    order = np.random.default_rng(1).permutation(len(seen))
    turned = seen.rows(order)
    turned = Observations.of(turned.points.aligned(("c", "a", "b")), turned.metrics, turned.values)
    there = law_class(name).fit(turned).mean(seen.points.aligned(("c", "a", "b")))
    np.testing.assert_allclose(law_class(name).fit(seen).mean(seen.points), there, rtol=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_metrics_that_are_partly_missing_are_fitted_on_the_rest(name: str) -> None:
    seen = world()
    holed = seen.values.copy()
    holed[::3, 1] = np.nan
    law = law_class(name).fit(Observations.of(seen.points, seen.metrics, holed))
    alone = law_class(name).fit(seen.only(["x"]))
    np.testing.assert_allclose(law.mean(seen.points)[:, :1], alone.mean(seen.points), rtol=1e-4)
    assert np.isfinite(law.mean(seen.points)).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_losses_of_any_size_are_fitted_alike(scale: float) -> None:
    seen = world()
    law = law_class("joint_shared_power").fit(Observations.of(seen.points, seen.metrics, seen.values * scale))
    np.testing.assert_allclose(law.mean(seen.points), seen.values * scale, rtol=0.02)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("runs", [2, 4])
def test_fewer_runs_than_domains_give_a_finite_law(name: str, runs: int) -> None:
    seen = world(tuple("abcdefgh"), runs=runs)
    law = law_class(name).fit(seen)
    assert np.isfinite(law.mean(seen.points)).all()
    assert np.isfinite(law.gradient(seen.points)).all()


@pytest.mark.parametrize("name", NAMES)
def test_one_domain_alone_and_a_constant_metric_are_fitted(name: str) -> None:
    seen = world()
    points = Points.of(("only",), np.ones((len(seen), 1)), parameters=seen.points.parameters, tokens=seen.points.tokens)
    values = np.stack([50 * seen.points.tokens**-0.2, np.full(len(seen), 2.5)], axis=1)
    law = law_class(name).fit(Observations.of(points, ("falls", "stays"), values))
    np.testing.assert_allclose(law.mean(points), values, rtol=0.03)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"parameters": np.nan}, "no row tells parameters and tokens"),
        ({"parameters": 1e7, "tokens": 1e9}, "all rows are of one scale"),
    ],
)
def test_what_a_joint_law_needs_is_named(change: dict[str, Any], told: str) -> None:
    seen = world()
    scales = {"parameters": seen.points.parameters, "tokens": seen.points.tokens} | change
    with pytest.raises(MixingError, match=told):
        law_class("joint_power").fit(
            Observations.of(Points.of(seen.domains, seen.weights, **scales), seen.metrics, seen.values)
        )


def test_losses_of_zero_and_points_without_a_scale_are_told() -> None:
    seen = world()
    with pytest.raises(MixingError, match="x has the value 0"):
        law_class("chinchilla").fit(Observations.of(seen.points, ("x",), np.zeros(len(seen))))
    with pytest.raises(MixingError, match="x was measured on no row"):
        law_class("chinchilla").fit(
            Observations.of(seen.points, ("x", "y"), np.stack([np.full(len(seen), np.nan), seen.values[:, 1]], axis=1))
        )
    with pytest.raises(MixingError, match="tells no parameters"):
        law_class("chinchilla").fit(seen).mean(Points.of(seen.domains, seen.weights))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.95))
def test_a_law_that_says_convex_is_convex(seed: int, share: float) -> None:
    random = np.random.default_rng(seed)
    law_type = joint(NAMES[seed % len(NAMES)])
    prior = law_type._prior(1, 5)
    theta = prior.mean + random.normal(size=prior.mean.shape) * np.minimum(prior.deviation, 1)
    law = law_type(
        domains=tuple("abcde"),
        metrics=("x",),
        theta=theta,
        centre=(17.0, 21.0),
        level=np.zeros(1),
        sigma=np.array([0.01]),
    )
    pair = random.dirichlet(np.full(5, 0.3), 2)
    middle = share * pair[0] + (1 - share) * pair[1]
    ends = Points.of(law.domains, np.vstack([pair, middle]), parameters=1e8, tokens=2e9)
    first, second, between = law.mean(ends)[:, 0]
    if law.convex[0]:
        assert between <= share * first + (1 - share) * second + 1e-9 * max(first, second)


def test_what_was_learned_is_told_by_name() -> None:
    told = law_class("joint_additive").fit(world()).told()
    assert told["constants"]["x"]["C"].keys() == {"a", "b", "c"}
    assert told["constants"]["x"]["E"] > 0


def test_larger_models_are_told_from_the_two_smallest(shared: Path) -> None:
    """The reference's best law errs by 2.63 % (worst metric 7.3) from 310M and 46 mixtures to larger ones."""
    seen = slimpajama(shared)
    small = seen.points.parameters < 4e8
    chosen = np.random.default_rng(1).permutation(60)[:46]
    ours, published = (
        errors(joint(name).fit(seen.rows(small & of_mixtures(seen, chosen))), seen.rows(~small))
        for name in ("joint_shared_power", "effective_tokens")
    )
    assert ours.mean() < 1.0
    assert ours.max() < 2.0
    assert ours.mean() < published.mean() < 2.63


@pytest.mark.heavy
def test_new_mixtures_and_the_largest_model_are_told_at_the_references_errors_or_below(shared: Path) -> None:
    """Its best: .71 % on 15 new mixtures (joint law), 1.32 % on the largest size (effective tokens)."""
    seen = slimpajama(shared)
    found = []
    for seed in range(3):
        chosen = of_mixtures(seen, np.random.default_rng(seed).permutation(60)[:46])
        found.append(errors(joint("joint_shared_power").fit(seen.rows(chosen)), seen.rows(~chosen)).mean())
    assert np.mean(found) < 0.62
    largest = seen.points.parameters > 9e8
    assert errors(joint("joint_shared_power").fit(seen.rows(~largest)), seen.rows(largest)).mean() < 0.7
