"""The recipe's `mix:` section: few keys are enough, and what is wrong is told at its key."""

from __future__ import annotations

import json
import math

import pytest
from pydantic import TypeAdapter, ValidationError

from mixing.loop.settings import Mix

MIX = TypeAdapter(Mix)
SIZES = {"a": {"layers": 1, "width": 16, "heads": 2}}


def test_nothing_but_the_section_is_enough():
    settings = MIX.validate_python({})
    assert (settings.budget(7), settings.first(7), settings.batch_runs) == (28, 14, 8)
    assert settings.budget(2) == 16
    swarm = settings.swarm.on([{"a": 1.0}])
    assert swarm.tokens_per_parameter == 20
    assert list(swarm.sizes) == ["small"]


def test_settings_are_the_same_after_they_were_told_as_json():
    settings = MIX.validate_python(
        {
            "proxies": {"sizes": SIZES, "tokens": 1000, "seeds": [0, 1]},
            "constraints": {"floors": {"a": 0.1}, "unique_tokens": {"a": math.inf}},
            "objective": {"weights": {"loss/*": 1}},
            "tokens": 1e9,
            "law": ["linear", "shared_power"],
        }
    )
    assert MIX.validate_json(json.dumps(settings.plain())) == settings


@pytest.mark.parametrize(
    ("section", "place", "line"),
    [
        ({"proxies": {"sizes": {"a": {"layers": 0, "width": 16, "heads": 2}}}}, "proxies.sizes.a.layers", "greater"),
        ({"proxies": {"learning_rate": -1}}, "proxies.learning_rate", "greater"),
        ({"proxies": {"token": 5}}, "proxies.token", "Unexpected"),
        ({"proxies": {"mixtures": [{"a": 1}]}}, "proxies.mixtures", "the loop proposes the mixtures; remove it"),
        ({"proxies": {"mixtures_file": "m.csv"}}, "proxies.mixtures_file", "the loop proposes the mixtures; remove it"),
        ({"proxies": {"tokens": 5, "tokens_per_parameter": 3}}, "proxies", "give exactly one of them"),
        ({"proxies": {"seeds": [1, 1]}}, "proxies", "has one twice"),
        ({"runs": 0}, "runs", "greater"),
        ({"stop_below": "1.5 %"}, "stop_below", "match pattern"),
        ({"stop_below": -1}, "stop_below", "greater"),
        ({"level": 1}, "level", "less than 1"),
        ({"constraints": {"floor": {}}}, "constraints.floor", "Unexpected"),
        ({"constraints": {"tokens": 5}}, "", "constraints.tokens: say it as mix.tokens"),
        ({"constraints": {"max_epochs": 5}}, "", "constraints.max_epochs: say it as mix.max_epochs"),
        ({"max_epochs": {"a": 0}}, "max_epochs", "greater"),
    ],
)
def test_a_mistake_is_told_at_its_key(section, place, line):
    with pytest.raises(ValidationError) as caught:
        MIX.validate_python(section)
    told = caught.value.errors()
    assert any(".".join(map(str, one["loc"])).startswith(place) and line in one["msg"] for one in told), told


@pytest.mark.parametrize(
    ("stop_below", "value", "worth"), [("0.1%", 2.0, 0.002), ("0.1%", -2.0, 0.002), (0.01, 2.0, 0.01), (0, 2.0, 0.0)]
)
def test_a_share_or_a_number_says_when_more_runs_are_worth_too_little(stop_below, value, worth):
    assert MIX.validate_python({"stop_below": stop_below}).least_worth(value) == pytest.approx(worth)


def test_the_target_bounds_epochs_and_says_how_often_proxies_repeat():
    settings = MIX.validate_python({"tokens": 1000, "proxies": {"sizes": SIZES}})
    bound = settings.bound({"a": 100.0, "b": 900.0})
    assert (bound.prior, bound.tokens, bound.max_epochs) == ("natural", 1000, 4.0)
    assert bound.polytope(("a", "b")).upper.tolist() == pytest.approx([0.4, 1.0])
    assert settings.swarm.target_tokens == 1000


def test_without_a_target_nothing_bounds_epochs():
    settings = MIX.validate_python({})
    bound = settings.bound({"a": 100.0, "b": 900.0})
    assert (bound.tokens, bound.max_epochs, bound.prior) == (None, None, "natural")
    assert settings.swarm.target_tokens is None


def test_domains_without_end_or_unknown_have_no_natural_mixture():
    settings = MIX.validate_python({"tokens": 1000})
    assert settings.bound({"a": math.inf, "b": 900.0}).prior is None
    assert settings.bound({"a": math.inf, "b": 100.0}).polytope(("a", "b")).upper.tolist() == pytest.approx([1.0, 0.4])
    assert settings.bound({"a": math.nan, "b": 100.0}).max_epochs is None


@pytest.mark.parametrize("own", [{"target_tokens": 5.0}, {"target_epochs": 2.0}])
def test_what_the_proxies_say_of_the_target_stays(own):
    settings = MIX.validate_python({"tokens": 1000, "proxies": own})
    assert settings.swarm == settings.proxies
