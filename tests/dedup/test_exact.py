"""Exact duplicates: white space aside, one stays, and it knows how many it stands for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from dedup import Exact

Verdict = Callable[..., Any]


def test_equal_texts_leave_one_and_others_stay(verdict: Verdict) -> None:
    texts = ["a  b\n", "a b", " a\tb", "a B", "a b.", ""]
    ids = [c * 32 for c in "cab012"]
    out = verdict(Exact(), texts, ids=ids)
    assert out.removed == {"c" * 32: ("a" * 32, 1.0), "b" * 32: ("a" * 32, 1.0)}
    assert out.survivors == {"a" * 32: (3, None)}
    assert {row["rule"] for row in out.rows} == {"duplicate"}


def test_rows_of_one_id_are_one_document(verdict: Verdict) -> None:
    out = verdict(Exact(), ["same"] * 5, ids=["a" * 32] * 5, shards=2)
    assert len(out.rows) == 4
    assert [copies for copies, _ in out.survivors.values()] == [5]


@pytest.mark.parametrize(("keep", "stays"), [("first_id", "a"), ("earliest", "c"), ("latest", "b"), ("longest", "d")])
def test_the_keep_policy_says_who_stays(keep: Any, stays: str, verdict: Verdict) -> None:
    texts = ["x y", "x y", "x y", "x    y"]
    dates = [None, datetime(2024, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC), None]
    out = verdict(
        Exact(keep=keep), texts, ids=[c * 32 for c in "abcd"], date=pa.array(dates, pa.timestamp("us", "UTC"))
    )
    assert out.survivors == {stays * 32: (4, datetime(2021, 1, 1, tzinfo=UTC))}
    assert len(out.removed) == 3


def test_copies_that_earlier_steps_counted_are_summed(verdict: Verdict) -> None:
    out = verdict(Exact(), ["t", "t", "u"], ids=[c * 32 for c in "abc"], copies=pa.array([3, None, 9], pa.int32()))
    assert out.survivors == {"a" * 32: (4, None)}


def test_the_answer_does_not_depend_on_shards(verdict: Verdict) -> None:
    texts = [f"text {number % 7}" for number in range(50)]
    ids = [f"{number * 7919 % 251:032x}" for number in range(50)]
    answers = [verdict(Exact(), texts, ids=ids, shards=shards) for shards in (1, 4)]
    assert answers[0].removed == answers[1].removed
    assert answers[0].survivors == answers[1].survivors


def test_no_documents_no_verdicts(verdict: Verdict) -> None:
    assert verdict(Exact(), []).rows == []
