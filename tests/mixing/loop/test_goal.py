"""What is minimised, by patterns of metrics' names."""

from __future__ import annotations

import pytest

from mixing.loop.goal import matches, spelt_out
from mixing.observations.points import MixingError
from mixing.optimum.objective import Objective

MEASURED = ("bits_per_byte", "loss", "loss/a", "loss/b", "loss/language/en", "accuracy")


@pytest.mark.parametrize(
    ("weights", "worst", "shares", "largest"),
    [
        ({}, (), {"loss/a": 1.0, "loss/b": 1.0}, ()),
        ({}, ("loss/*",), {}, ("loss/a", "loss/b")),
        ({"loss/*": 1.0}, (), {"loss/a": 0.5, "loss/b": 0.5}, ()),
        ({"loss/*": 1.0, "loss": 1.0}, (), {"loss": 1.0, "loss/a": 0.5, "loss/b": 0.5}, ()),
        ({"loss/a": 3.0, "loss/*": 2.0}, (), {"loss/a": 4.0, "loss/b": 1.0}, ()),
        ({"accuracy": -3.0}, ("loss",), {"accuracy": -3.0}, ("loss",)),
        ({"loss/language/*": 1.0}, (), {"loss/language/en": 1.0}, ()),
    ],
)
def test_each_metric_of_a_pattern_gets_its_part_of_the_share(weights, worst, shares, largest):
    found = spelt_out(Objective(weights=weights, worst=worst, kl=0.1), ("b", "a"), MEASURED)
    assert found.weights == pytest.approx(shares)
    assert (found.worst, found.kl) == (largest, 0.1)


@pytest.mark.parametrize("key", ["weights", "worst"])
def test_a_pattern_that_matches_nothing_is_told_with_what_there_is(key):
    asked = Objective(weights={"loss/c": 1.0}) if key == "weights" else Objective(worst=("loss/c",))
    with pytest.raises(MixingError, match=rf"objective\.{key}: nothing measured is 'loss/c'; there are loss/"):
        spelt_out(asked, ("a",), MEASURED)


def test_the_default_is_the_held_out_losses_that_were_measured():
    assert spelt_out(Objective(), ("a", "b", "c"), MEASURED).weights == {"loss/a": 1.0, "loss/b": 1.0}
    with pytest.raises(
        MixingError, match=r"objective: no loss/DOMAIN was measured; name others under weights: loss, x"
    ):
        spelt_out(Objective(), ("a",), ("x", "loss"))
    with pytest.raises(MixingError, match="no metric has a value"):
        spelt_out(Objective(), ("a",), ())


def test_a_metric_whose_name_holds_signs_of_patterns_is_found_as_it_is():
    assert matches("loss/[a]", "loss/[a]")
    assert matches("loss/[a]", "loss/a")
    assert not matches("loss/*", "loss/language/en")
