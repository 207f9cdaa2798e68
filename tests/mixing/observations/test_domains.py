"""Domains split, merged, renamed and added; swarms pooled: no run and no weight is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixing.observations import MixingError, Observations, Points, add, merge, pool, rename, split


def swarm(seed: int = 0, *, domains: tuple[str, ...] = ("web", "code", "books"), count: int = 4) -> Observations:
    rng = np.random.default_rng(seed)
    return Observations.of(
        Points.of(
            domains,
            rng.dirichlet(np.ones(len(domains)), count),
            parameters=1e6,
            tokens=1e8,
            unique_tokens={name: 1e7 * (at + 1) for at, name in enumerate(domains)},
        ),
        ("loss",),
        rng.normal(3, 1, count),
        runs=[f"s{seed}-{number}" for number in range(count)],
    )


def weight(observations: Observations, domain: str) -> np.ndarray:
    return observations.weights[:, observations.domains.index(domain)]


def unique(observations: Observations, domain: str) -> np.ndarray:
    return observations.points.unique_tokens[:, observations.domains.index(domain)]


def test_a_split_shares_weight_and_unique_tokens_by_the_tokens_of_the_parts() -> None:
    whole = swarm()
    parts = split(whole, "web", {"web@high": 1e9, "web@low": 3e9})
    assert parts.domains == ("web@high", "web@low", "code", "books")
    np.testing.assert_allclose(weight(parts, "web@high"), weight(whole, "web") / 4)
    np.testing.assert_allclose(unique(parts, "web@low"), 0.75e7)
    np.testing.assert_allclose(parts.points.epochs[:, 0], whole.points.epochs[:, 0])


@given(seed=st.integers(0, 100), shares=st.lists(st.floats(0.01, 10), min_size=1, max_size=4), at=st.integers(0, 2))
def test_a_split_undone_by_a_merge_is_what_was_there(seed: int, shares: list[float], at: int) -> None:
    whole = swarm(seed)
    domain = whole.domains[at]
    parts = split(whole, domain, {f"p{number}": share for number, share in enumerate(shares)})
    back = (
        merge(parts, [f"p{number}" for number in range(len(shares))], domain)
        if len(shares) > 1
        else rename(parts, {"p0": domain})
    )
    assert back.domains == whole.domains
    np.testing.assert_allclose(back.weights, whole.weights, atol=1e-14)
    np.testing.assert_allclose(back.points.unique_tokens, whole.points.unique_tokens, rtol=1e-12)
    np.testing.assert_array_equal(back.values, whole.values)


def test_runs_before_and_after_a_split_are_one_swarm() -> None:
    before, after = swarm(0), swarm(1, domains=("web-en", "web-de", "code", "books"))
    whole = split(pool(before, after), "web", {"web-en": 3, "web-de": 1})
    assert set(whole.domains) == {"web-en", "web-de", "code", "books"}
    assert len(whole) == len(before) + len(after)
    np.testing.assert_allclose(whole.weights.sum(axis=1), 1)
    np.testing.assert_allclose(weight(whole, "web-en")[:4], weight(before, "web") * 0.75)
    np.testing.assert_allclose(weight(whole, "web-en")[4:], weight(after, "web-en"))
    np.testing.assert_allclose(unique(whole, "web-en"), [0.75e7] * 4 + [1e7] * 4)


def test_a_split_may_keep_the_name_of_the_whole() -> None:
    whole = split(swarm(), "web", {"web": 2, "web@high": 1})
    assert whole.domains == ("web", "web@high", "code", "books")
    np.testing.assert_allclose(weight(whole, "web") + weight(whole, "web@high"), weight(swarm(), "web"))


def test_unique_tokens_of_merged_domains_are_those_that_the_run_took_from() -> None:
    points = Points.of(
        ("a", "b", "c"), [[0.5, 0, 0.5], [0.2, 0.3, 0.5], [0, 0, 1]], unique_tokens={"a": 10.0, "b": 100.0}
    )
    whole = merge(Observations.of(points, ("x",), [1, 2, 3]), ("a", "b"), "ab")
    assert whole.domains == ("ab", "c")
    assert unique(whole, "ab").tolist() == [10, 110, 110]
    np.testing.assert_allclose(weight(whole, "ab"), [0.5, 0.5, 0])


def test_an_added_domain_has_no_weight_and_a_renamed_one_all_of_it() -> None:
    more = add(swarm(), "math", unique_tokens=5.0)
    assert weight(more, "math").tolist() == [0] * 4
    assert unique(more, "math").tolist() == [5] * 4
    named = rename(swarm(), {"web": "crawl"})
    np.testing.assert_array_equal(weight(named, "crawl"), weight(swarm(), "web"))
    swapped = rename(swarm(), {"web": "code", "code": "web"})
    np.testing.assert_array_equal(weight(swapped, "code"), weight(swarm(), "web"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda whole: split(whole, "wob", {"a": 1}), "no 'wob'; there are web, code, books"),
        (lambda whole: split(whole, "web", {}), "no part"),
        (lambda whole: split(whole, "web", {"a": 0}), "above 0"),
        (lambda whole: split(whole, "web", {"a": float("nan")}), "above 0"),
        (lambda whole: merge(whole, ("web",), "all"), "give two or more"),
        (lambda whole: merge(whole, ("web", "code"), "books"), "'books' is one already"),
        (lambda whole: merge(whole, ("web", "cod"), "all"), "no 'cod'"),
        (lambda whole: rename(whole, {"web": "code"}), "two domains would be 'code'"),
        (lambda whole: rename(whole, {"wob": "x"}), "no 'wob'"),
        (lambda whole: add(whole, "web"), "is one already"),
    ],
)
def test_a_change_that_means_nothing_is_refused(change: object, told: str) -> None:
    with pytest.raises(MixingError, match=told):
        change(swarm())  # type: ignore[operator]


def test_a_pool_knows_domains_by_name_and_metrics_that_some_did_not_measure() -> None:
    one = swarm(0)
    other = rename(swarm(1, domains=("code", "math")), {})
    whole = pool(one, other)
    assert whole.domains == ("web", "code", "books", "math")
    np.testing.assert_array_equal(weight(whole, "math")[:4], 0)
    np.testing.assert_array_equal(weight(whole, "code")[4:], weight(other, "code"))
    assert np.isnan(unique(whole, "web")[4:]).all()
    renamed = Observations.of(other.points, ("task",), other.values, runs=other.runs)
    both = pool(one, renamed)
    assert both.metrics == ("loss", "task")
    assert np.isnan(both.values).tolist() == [[False, True]] * 4 + [[True, False]] * 4


def test_a_pool_adds_later_metrics_to_the_runs_they_are_of() -> None:
    one = swarm()
    later = Observations.of(one.points, ("task",), np.arange(4.0), runs=one.runs)
    whole = pool(one, later)
    assert len(whole) == 4
    assert whole.values[:, 1].tolist() == [0, 1, 2, 3]
    assert not whole.notes


def test_a_pool_of_a_swarm_with_itself_is_the_swarm_and_says_so() -> None:
    whole = pool(swarm(), swarm())
    np.testing.assert_array_equal(whole.values, swarm().values)
    assert whole.notes == ("4 runs are told more than once: each counts once",)


def test_runs_of_one_name_with_other_mixtures_or_values_are_refused_unless_named_apart() -> None:
    one = swarm(0)
    other = Observations.of(swarm(1).points, ("loss",), [1, 2, 3, 4], runs=one.runs)
    with pytest.raises(MixingError, match=r"swarm 2, row 1: run 's0-0' has .* give the two names of their own"):
        pool(one, other)
    assert len(pool(one, other, names=("old", "new"))) == 8
    with pytest.raises(MixingError, match="loss of run 's0-0' is 1, but"):
        pool(one, Observations.of(one.points, ("loss",), [1, 2, 3, 4], runs=one.runs))
    with pytest.raises(MixingError, match="give each one of its own"):
        pool(one, other, names=("same", "same"))
    with pytest.raises(MixingError, match="nothing given"):
        pool()


@given(order=st.permutations(range(4)))
def test_the_order_of_rows_in_a_swarm_changes_no_run(order: list[int]) -> None:
    whole = pool(swarm(), swarm(1).rows(list(order)))
    for run, row, value in zip(whole.runs[4:], whole.weights[4:], whole.values[4:], strict=True):
        at = swarm(1).runs.index(run)
        np.testing.assert_array_equal(row, swarm(1).weights[at])
        np.testing.assert_array_equal(value, swarm(1).values[at])
