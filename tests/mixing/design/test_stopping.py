"""What more runs are worth: nothing is said too early, and it falls as runs are made."""

from __future__ import annotations

import numpy as np
import pytest

from mixing.design import worth
from mixing.observations.observations import Observations
from tests.mixing.world import World, world


@pytest.fixture(scope="module")
def here() -> World:
    return world(4, seed=3, noise=0.002, corner_noise=0.01)


def runs(here: World, count: int) -> Observations:
    return here.measure(np.random.default_rng(0).dirichlet(np.ones(4), count), seed=1)


def test_nothing_is_told_before_there_are_three_mixtures_a_domain(here: World) -> None:
    few, enough = worth(runs(here, 11), least=1.0), worth(runs(here, 12), least=1e-9, law="shared_power")
    assert np.isnan(few.gain)
    assert not few.stop
    assert few.why == "10 more runs: too little is known to judge; 1 more mixtures are to be measured first"
    assert enough.gain > 0


def test_a_sentence_says_why_on_both_sides_of_what_is_least_wanted(here: World) -> None:
    known = runs(here, 16)
    gain = worth(known, law="shared_power").gain
    above, below = (worth(known, law="shared_power", least=factor * gain) for factor in (1.01, 0.99))
    assert above.stop
    assert not below.stop
    assert above.why.startswith(f"10 more runs are expected to lower the loss by {gain:.2g} (90%: ")
    assert f"; that is less than {1.01 * gain:.2g}" in above.why
    assert f"; that is not less than {0.99 * gain:.2g}" in below.why


def test_it_lies_within_its_interval_and_below_its_limit_and_costs_what_runs_cost(here: World) -> None:
    told = worth(runs(here, 16), 5, law="shared_power")
    assert told.low <= told.gain <= told.high
    assert told.gain <= told.limit
    assert told.flops == pytest.approx(5 * 6 * 1e6 * 1e9)
    assert not told.stop
    assert worth(runs(here, 16), 10, law="shared_power").gain >= told.gain * 0.9


def test_more_runs_leave_less_to_gain(here: World) -> None:
    early, late = (worth(runs(here, count), law="shared_power") for count in (12, 48))
    assert late.gain < early.gain / 2
