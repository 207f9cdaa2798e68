"""The loop in simulated worlds of known law, noise and cost: against random designs, the stop rule, several sizes."""

from __future__ import annotations

import numpy as np
import pytest

from mixing.design import worth
from tests.mixing.design.campaigns import CLOSE, EASY, HARD, best_run, campaign, excess, random_design, runs_needed
from tests.mixing.world import world

SEEDS = range(5)
"""Worlds that nothing was chosen on: settings of the design were, on worlds from 100 on."""
RANDOM_COUNTS = (16, 24, 32, 48, 64, 96, 128)


def test_two_dozen_runs_find_the_best_mixture_of_a_small_world() -> None:
    here = world(4, seed=0, bend=0.3, ripple=0.2, noise=0.003, corner_noise=0.03)
    known, fitted = list(campaign(here, seed=0, runs=20, law="shared_power"))[-1]
    assert excess(here, fitted) < CLOSE
    assert excess(here, fitted) < best_run(here, known)


def test_the_world_is_what_it_says() -> None:
    here = world(3, seed=0, noise=0.01, corner_noise=0.1)
    many = np.repeat(np.vstack([here.natural, np.eye(3)[:1]]), 4000, axis=0)
    values = here.measure(many).values.reshape(2, 4000, 3)
    np.testing.assert_allclose(values.std(axis=1)[0], 0.01, rtol=0.05)
    np.testing.assert_allclose(values.std(axis=1)[1], 0.1, rtol=0.05)
    even = np.random.default_rng(0).dirichlet(np.ones(3), 20000)
    assert here.loss(even).min() >= here.best[1]
    assert here.loss(even).min() < here.best[1] * 1.001
    assert here.loss(here.best[0][None], (4e6, 4e9))[0] < here.best[1]


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_third_of_the_runs_of_a_random_design_are_enough() -> None:
    """Median over five worlds; both random designs, the natural one being RegMix's, and the best run of all of them."""
    needed: dict[str, list[float]] = {"ours": [], "even": [], "natural": [], "best run": []}
    for seed in SEEDS:
        here = world(seed=seed, **HARD)
        ours = [(len(known), excess(here, fitted)) for known, fitted in campaign(here, seed=seed, runs=48)]
        needed["ours"].append(runs_needed(ours))
        for name in ("even", "natural"):
            fits = list(random_design(here, seed=seed, counts=RANDOM_COUNTS, natural=name == "natural"))
            needed[name].append(runs_needed([(len(known), excess(here, fitted)) for known, fitted in fits]))
            if name == "even":
                needed["best run"].append(runs_needed([(len(known), best_run(here, known)) for known, _ in fits]))
    median = {name: float(np.median(runs)) for name, runs in needed.items()}
    assert median["ours"] <= 42, needed
    assert all(3 * median["ours"] <= median[name] for name in ("even", "natural", "best run")), needed


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_the_stop_rule_stops_neither_too_early_nor_never() -> None:
    """Ten more runs worth less than .1% of the loss: what is left to gain is then small, and runs are left over."""
    stopped = []
    for settings in (EASY, HARD):
        for seed in (0, 1):
            here = world(seed=seed, **settings)
            for known, fitted in campaign(here, seed=seed, runs=96, first=16, batch=8):
                told = worth(known, law=fitted, least=0.001 * here.best[1])
                if told.stop:
                    stopped.append((len(known), excess(here, fitted)))
                    break
    assert len(stopped) == 4, stopped
    assert all(loss < 2 * CLOSE for _, loss in stopped), stopped
    assert max(runs for runs, _ in stopped[:2]) < min(runs for runs, _ in stopped[2:]), stopped


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_cheap_sizes_are_used_where_they_tell_as_much() -> None:
    """A size sixteen times cheaper, in 40 runs of both that cost less than 16 at the target's size."""
    sizes = {"small": (1e6, 1e9), "large": (4e6, 4e9)}
    losses, costs = [], []
    for seed in (0, 1, 2):
        here = world(5, seed=seed, bend=0.3, ripple=0.2, noise=0.005, corner_noise=0.05)
        *_, (known, fitted) = campaign(here, seed=seed, runs=40, first=20, batch=5, sizes=sizes, target=sizes["large"])
        losses.append(excess(here, fitted, sizes["large"]))
        costs.append(float(known.flops.sum() / (6 * 4e6 * 4e9)))
    assert np.median(losses) < 2 * CLOSE, (losses, costs)
    assert np.median(costs) < 16, (losses, costs)
