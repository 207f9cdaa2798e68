"""Links from losses to downstream metrics, and laws that end in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixing.laws import law_class
from mixing.observations import read_observations
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError
from mixing.scale import Downstream, fit_link

Runs = Callable[..., Observations]


def measured(runs: Runs, metric: Callable[[Floats], Floats], noise: float = 0.003, mixtures: int = 40) -> Observations:
    """Runs with losses x and y and a metric `task` of them."""
    seen = runs((1e7,), mixtures=mixtures)
    task = metric(seen.values) + noise * np.random.default_rng(4).normal(size=len(seen))
    return Observations.of(seen.points, ("x", "y", "task"), np.column_stack([seen.values, task]), runs=seen.runs)


def accuracy(losses: Floats) -> Floats:
    """Between .25, chance, and .8; the first loss counts twice as much."""
    return np.asarray(0.25 + 0.55 / (1 + np.exp(3 * (2 * losses[:, 0] + losses[:, 1] - 8.2))))


def test_a_sigmoid_of_two_losses_is_found_again(runs: Runs) -> None:
    seen = measured(runs, accuracy)
    link = fit_link(seen, "task", ["x", "y"], bounds=(0.2, 1.0))
    assert link.explained > 0.95
    assert link.rank > 0.95
    assert not link.warnings
    np.testing.assert_allclose(link.value(seen.values[:, :2]), accuracy(seen.values), atol=0.01)
    assert (link.slopes(seen.values[:, :2]) <= 0).all()


def test_one_run_that_went_wrong_does_not_bend_the_curve(runs: Runs) -> None:
    seen = measured(runs, accuracy)
    wrong = seen.values.copy()
    wrong[3, 2] = 0.95
    link = fit_link(replace(seen, values=wrong), "task", ["x", "y"], bounds=(0.2, 1.0))
    np.testing.assert_allclose(link.value(seen.values[:, :2]), accuracy(seen.values), atol=0.03)


def test_a_metric_that_rises_with_loss_takes_a_power(runs: Runs) -> None:
    def perplexity(losses: Floats) -> Floats:
        return np.asarray(2 + 3 * losses[:, 0] ** 1.5)

    seen = measured(runs, perplexity)
    link = fit_link(seen, "task", ["x"], rising=False)
    np.testing.assert_allclose(link.value(seen.values[:, :1]), perplexity(seen.values), rtol=0.005)
    assert (link.slopes(seen.values[:, :1]) >= 0).all()


def test_a_metric_that_losses_do_not_tell_is_an_error_with_figures(runs: Runs) -> None:
    noise = np.random.default_rng(8)
    seen = measured(runs, lambda losses: 0.3 + 0.02 * noise.random(len(losses)))
    with pytest.raises(MixingError, match="task is not told by x, y: held-out errors are"):
        fit_link(seen, "task", ["x", "y"])


def test_a_metric_that_rises_where_it_should_fall_is_not_told(runs: Runs) -> None:
    seen = measured(runs, accuracy)
    with pytest.raises(MixingError, match="is not told by"):
        fit_link(seen, "task", ["x", "y"], rising=False, shape="sigmoid")


def test_a_weak_link_warns(runs: Runs) -> None:
    seen = measured(runs, accuracy, noise=0.15, mixtures=60)
    link = fit_link(replace(seen, values=np.clip(seen.values, [0, 0, 0], [9, 9, 1])), "task", ["x", "y"])
    assert 0 < link.explained < 0.5
    assert "of held-out runs only" in link.warnings[0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"losses": []}, "no losses"),
        ({"metric": "other"}, "no 'other'"),
        ({"bounds": (0.5, 1.0)}, "give bounds that hold it"),
        ({"rows": 4}, "4 runs measured it and x; 6 are needed"),
        ({"rows": 0}, "0 runs measured it and x; 6 are needed"),
        ({"constant": True}, "is 0.5 in all runs"),
    ],
)
def test_what_a_link_cannot_be_fitted_to_is_told(runs: Runs, given: dict[str, Any], told: str) -> None:
    seen = measured(runs, (lambda losses: np.full(len(losses), 0.5)) if "constant" in given else accuracy, noise=0.0)
    with pytest.raises(MixingError, match=told):
        fit_link(
            seen.rows(slice(0, given.get("rows", 40))), given.get("metric", "task"), given.get("losses", ["x"]),
            bounds=given.get("bounds", (0.0, 1.0)),
        )  # fmt: skip


def test_all_rows_of_a_run_are_held_out_together(runs: Runs) -> None:
    """Ten rows each of six runs of random accuracies: their losses name the run, and must not tell its accuracy."""
    random = np.random.default_rng(0)
    seen = runs((1e7,), mixtures=60)
    run = np.repeat(np.arange(6), 10)
    losses = 3 + 0.1 * random.permutation(6)[run] + 1e-3 * random.random(60)
    table = np.column_stack([losses, 0.5 + 0.2 * random.random(6)[run]])
    with pytest.raises(MixingError, match="not told"):
        fit_link(Observations.of(seen.points, ("x", "task"), table, runs=[f"r{name}" for name in run]), "task", ["x"])


def test_the_composed_law_tells_shortfall_with_slopes_and_deviations(runs: Runs) -> None:
    seen = measured(runs, accuracy)
    law = Downstream.of(
        law_class("shared_power").fit(seen.only(["x", "y"])), fit_link(seen, "task", ["x", "y"], bounds=(0.2, 1.0))
    )
    assert law.metrics == ("x", "y", "1 - task")
    np.testing.assert_allclose(law.mean(seen.points)[:, 2], 1 - accuracy(seen.values), atol=0.02)
    for place in range(3):
        step = np.eye(3)[place] * 1e-6
        up, down = (law.mean(replace(seen.points, weights=seen.weights + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(law.gradient(seen.points)[:, :, place], (up - down) / 2e-6, rtol=2e-4, atol=1e-5)
    deviation = law.deviation(seen.points)
    assert deviation is not None
    covered = np.abs(law.mean(seen.points)[:, 2] - (1 - seen.values[:, 2])) < 1.645 * deviation[:, 2]
    assert covered.mean() > 0.8
    assert (law.convex == [True, True, False]).all()
    assert set(law.told()["links"]["task"]["losses"]) == {"x", "y"}


def test_a_composed_law_is_fitted_at_once_or_says_what_it_lacks(runs: Runs) -> None:
    seen = measured(runs, accuracy)
    law = Downstream.fit(seen, metrics={"task": ("x", "y")})
    np.testing.assert_allclose(law.mean(seen.points)[:, 2], 1 - accuracy(seen.values), atol=0.03)
    with pytest.raises(MixingError, match="is not said; give"):
        Downstream.fit(seen)
    link = fit_link(seen, "task", ["x", "y"])
    with pytest.raises(MixingError, match="task takes 'y'; the law tells x"):
        Downstream.of(law_class("linear").fit(seen.only(["x"])), link)
    with pytest.raises(MixingError, match="'1 - task' is told twice"):
        Downstream.of(law_class("linear").fit(seen.only(["x", "y"])), (link, link))


def test_a_chat_loss_of_larger_models_follows_from_domain_losses_of_small_ones(shared: Path) -> None:
    """Loss on OpenHermes, linked at 122M and 310M parameters, told at 680M and 937M from their own domain losses."""
    seen = read_observations(shared / "mixing" / "slimpajama" / "runs.csv")
    seen = seen.rows(np.isfinite(seen.values).all(axis=1) & (seen.points.tokens > 9e9))
    small = seen.points.parameters < 4e8
    target = next(name for name in seen.metrics if name.startswith("openhermes"))
    losses = [name for name in seen.metrics if name != target]
    link = fit_link(seen.rows(small), target, losses, rising=False)
    large = seen.rows(~small)
    told = link.value(large.only(losses).values)
    assert link.explained > 0.9
    assert np.abs(told / large.only([target]).values[:, 0] - 1).mean() < 0.008
