"""Constraints by name, and the polytopes they are."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from mixing.observations.points import MixingError
from mixing.optimum import Constraints, Group

DOMAINS = ("web", "code", "wiki")
TOKENS = {"web": 8e9, "code": 1.5e9, "wiki": 5e8}


def test_each_constraint_becomes_the_bound_it_says() -> None:
    polytope = Constraints(
        floors={"web": 0.1},
        ceilings={"code": 0.7},
        groups={"clean": Group(domains=("code", "wiki"), floor=0.2, ceiling=0.8)},
        prior="natural",
        max_ratio={"wiki": 3},
        tokens=1e10,
        unique_tokens=TOKENS,
        max_epochs=4,
        max_change=0.5,
    ).polytope(DOMAINS)
    np.testing.assert_allclose(polytope.lower, [0.1, 0, 0])
    np.testing.assert_allclose(polytope.upper, [1, 0.6, 0.15])
    assert polytope.upper_names == ("", "max_epochs.code", "max_ratio.wiki")
    np.testing.assert_allclose(polytope.rows, [[0, -1, -1], [0, 1, 1]])
    np.testing.assert_allclose(polytope.limits, [-0.2, 0.8])
    assert polytope.names == ("groups.clean.floor", "groups.clean.ceiling")
    assert polytope.prior is not None
    np.testing.assert_allclose(polytope.prior, [0.8, 0.15, 0.05])


def test_the_tightest_of_caps_is_the_one_that_is_named() -> None:
    told = Constraints(ceilings={"wiki": 0.1}, tokens=1e10, unique_tokens=TOKENS, max_epochs={"wiki": 4})
    assert told.polytope(DOMAINS).upper_names[2] == "ceilings.wiki"
    assert told.polytope(DOMAINS).upper[2] == 0.1


@pytest.mark.parametrize(
    ("constraints", "told"),
    [
        (Constraints(floors={"wikis": 0.1}), "floors: no domain 'wikis'; did you mean 'wiki'?"),
        (Constraints(ceilings={"x": 0.1}), "ceilings: no domain 'x'; the domains are web, code, wiki"),
        (
            Constraints(groups={"g": Group(domains=("Code",), floor=0.1)}),
            "groups.g: no domain 'Code'; did you mean 'code'?",
        ),
        (Constraints(prior={"web": 0.5}), "prior: row 1: sums to 0.5000; the weights of a mixture sum to 1"),
        (Constraints(prior="natural"), "prior: natural: needs unique_tokens of web, a finite number"),
        (Constraints(max_ratio=4), "max_ratio: times what; give prior, {domain: share} or natural"),
        (Constraints(max_change=0.2), "max_change: measured from what; give prior, {domain: share} or natural"),
        (Constraints(max_epochs=4, unique_tokens=TOKENS), "max_epochs: of a run of what length; give tokens"),
        (
            Constraints(max_epochs=4, tokens=1e9, unique_tokens={"web": 1e9}),
            "max_epochs: needs unique_tokens of code; give them, or .inf where without end",
        ),
        (Constraints(unique_tokens={"webb": 1e9}), "unique_tokens: no domain 'webb'; did you mean 'web'?"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(constraints: Constraints, told: str) -> None:
    with pytest.raises(MixingError) as error:
        constraints.polytope(DOMAINS)
    assert str(error.value) == told


@pytest.mark.parametrize(
    "settings",
    [{"floors": {"web": -0.1}}, {"ceilings": {"web": 1.1}}, {"max_epochs": 0}, {"max_change": 2}, {"florrs": {}}],
)
def test_settings_out_of_range_fail_where_they_are_made(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Constraints).validate_python(settings)


def test_settings_as_a_recipe_writes_them() -> None:
    told = {"groups": {"clean": {"domains": ["code", "wiki"], "ceiling": 0.5}}, "prior": "natural", "max_ratio": 4}
    constraints = TypeAdapter(Constraints).validate_python({**told, "unique_tokens": TOKENS})
    np.testing.assert_allclose(constraints.polytope(DOMAINS).upper, [1, 0.6, 0.2])


def test_endless_tokens_have_no_cap() -> None:
    constraints = Constraints(tokens=1e12, unique_tokens={**TOKENS, "web": np.inf}, max_epochs=1)
    np.testing.assert_allclose(constraints.polytope(DOMAINS).upper, [1, 0.0015, 0.0005])
