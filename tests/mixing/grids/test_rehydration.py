"""Repeats by copies and quality."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixing.grids import Grid, count_copies, quality_repeats, rehydrate, upsampled
from mixing.grids.rehydration import REPEATS, bucket_of
from mixing.observations import MixingError


@pytest.mark.parametrize(
    ("copies", "times"),
    [(0, 1), (1, 1), (2, 2), (3, 3), (4, 3), (5, 5), (99, 5), (100, 8), (999, 8), (1000, 1), (10**9, 1)],
)
def test_repeats_of_published_buckets(copies: int, times: float) -> None:
    assert REPEATS[int(bucket_of([copies])[0])] == times


def corpus(rows: Sequence[tuple[str, int | None, int]]) -> pa.Table:
    domains, copies, tokens = zip(*rows, strict=True)
    return pa.table(
        {"domain": domains, "copies": pa.array(copies, pa.int32()), "token_count": pa.array(tokens, pa.int32())}
    )


CORPUS = corpus([("web", 1, 60), ("web", None, 10), ("web", 2, 15), ("web", 7, 3), ("code", 1, 20), ("code", 4, 5)])


def test_weights_are_tokens_times_repeats() -> None:
    found = {one.cell: one for one in rehydrate(count_copies(CORPUS))}
    assert list(found) == ["code@copies:1", "code@copies:3", "web@copies:1", "web@copies:2", "web@copies:5"]
    assert (found["web@copies:1"].documents, found["web@copies:1"].tokens) == (2, 70)
    total = 20 + 5 * 3 + 70 + 15 * 2 + 3 * 5
    assert found["web@copies:5"].weight == pytest.approx(15 / total)
    assert found["code@copies:3"].weight == pytest.approx(15 / total)
    assert sum(one.weight for one in found.values()) == pytest.approx(1)
    grid = Grid.parse(tuple(found))
    assert grid.by_domain({name: one.weight for name, one in found.items()})["code"] == pytest.approx(35 / total)


@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 40), max_size=3))
def test_counts_are_the_same_in_any_batches_and_order(seed: int, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    rows = [(f"d{rng.integers(2)}", int(rng.geometric(0.2)), int(rng.integers(1, 50))) for _ in range(40)]
    edges = sorted({0, 40, *cuts})
    shuffled = [rows[at] for at in rng.permutation(40)]
    parts = [corpus(shuffled[low:high]) for low, high in itertools.pairwise(edges)]
    assert count_copies(parts) == count_copies(corpus(rows))
    assert sum(tokens for _, tokens in count_copies(parts).values()) == sum(tokens for _, _, tokens in rows)


def test_one_repeat_for_all_gives_natural_weights_and_none_leaves_a_bucket_out() -> None:
    even = rehydrate(count_copies(CORPUS, repeats={1: 1}), {1: 1})
    assert {one.cell: one.weight for one in even} == pytest.approx(
        {"code@copies:1": 25 / 113, "web@copies:1": 88 / 113}
    )
    once = rehydrate(count_copies(CORPUS, repeats={1: 1, 2: 0}), {1: 1, 2: 0})
    assert [one.weight for one in once] == pytest.approx([20 / 90, 0, 70 / 90, 0])


def test_upsampled_domains_and_those_left_out() -> None:
    assert upsampled({"a": 100, "b": 50}, {"b": 4}) == pytest.approx({"a": 1 / 3, "b": 2 / 3})


def test_repeats_rise_with_the_share_that_filters_kept() -> None:
    assert quality_repeats({"x": 0.2, "y": 0.5, "z": 0.8}, most=4) == pytest.approx({"x": 1, "y": 2.5, "z": 4})
    assert quality_repeats({"x": 0.5, "y": 0.5}) == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: bucket_of([1], {2: 1}), "the first bucket begins at 1"),
        (lambda: bucket_of([1], {}), "the first bucket begins at 1"),
        (lambda: bucket_of([1], {1: -1}), "-1 from 1 copies on"),
        (lambda: count_copies(CORPUS.drop_columns(["copies"])), "no column 'copies'"),
        (lambda: count_copies(CORPUS.drop_columns(["token_count"])), "no column 'token_count'"),
        (lambda: count_copies(corpus([("web", 1, None)])), "tokenise the corpus first"),  # type: ignore[list-item]
        (lambda: rehydrate({("web", 7): (1, 1)}), "no bucket begins at 7"),
        (lambda: rehydrate({("web", 1): (1, 0)}), "no token is seen"),
        (lambda: upsampled({"a": 1}, {"b": 1}), "no 'b'"),
        (lambda: upsampled({"a": -1}, {}), "a has -1 tokens"),
        (lambda: upsampled({"a": 1}, {"a": float("inf")}), "inf times"),
        (lambda: quality_repeats({"a": 1.5}), "from 0 to 1"),
        (lambda: quality_repeats({}), "from 0 to 1"),
        (lambda: quality_repeats({"a": 0.5}, most=0.5), "1 or more"),
    ],
)
def test_what_means_nothing_is_refused(make: Any, told: str) -> None:
    with pytest.raises(MixingError, match=told):
        make()
