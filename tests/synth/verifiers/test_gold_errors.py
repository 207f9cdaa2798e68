"""Wrong golds are found where rollouts agree against them, and hard questions are not taken for wrong golds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.verdicts import Check, Verdict
from synth.verifiers import verify
from synth.verifiers.gold_errors import GoldErrors, _largest_table, grouped, suspect_golds


def world(
    *,
    seed: int,
    right: tuple[float, float],
    spread: float = 1.0,
    rows: int = 2_000,
    rollouts: int = 16,
    wrong: float = 0.05,
) -> tuple[list[dict[str, Any]], np.ndarray[Any, Any]]:
    """A table of a simulated teacher, and which golds are wrong. right: Beta shape of how often it is right, an item;
    its wrong answers are eight, with shares by a Dirichlet distribution."""
    random = np.random.default_rng(seed)
    table, flipped = [], []
    for item in range(rows):
        chance, shares = random.beta(*right), random.dirichlet([spread] * 8)
        answers = [0 if random.random() < chance else 1 + int(random.choice(8, p=shares)) for _ in range(rollouts)]
        flipped.append(random.random() < wrong)
        gold = 0 if not flipped[-1] else 100 if random.random() < 0.5 else 1 + int(random.integers(8))
        table.append({"item": str(item), "agrees": [answer == gold for answer in answers], "groups": answers})
    return table, np.array(flipped)


@pytest.mark.parametrize(
    ("right", "spread", "recall", "false"),
    [((8, 1), 1.0, 0.98, 0.002), ((4, 1), 1.0, 0.9, 0.002), ((4, 1), 0.3, 0.9, 0.002), ((2, 1), 1.0, 0.5, 0.002)],
)
def test_of_five_percent_flipped_golds_most_are_found_where_the_teacher_is_good(
    right: tuple[float, float], spread: float, recall: float, false: float
) -> None:
    table, flipped = world(seed=1, right=right, spread=spread)
    flagged = np.array([one.flag == "gold_wrong" for one in suspect_golds(table)])
    assert flagged[flipped].mean() >= recall
    assert flagged[~flipped].mean() <= false


def test_a_weak_teacher_that_errs_alike_condemns_no_gold() -> None:
    table, flipped = world(seed=2, right=(0.5, 1), spread=0.3)
    flagged = np.array([one.flag == "gold_wrong" for one in suspect_golds(table)])
    agreed = np.array([one.majority_share > 0.5 for one in suspect_golds(table)])
    assert agreed[~flipped].mean() > 0.1  # where a bare majority against the gold would condemn so many
    assert flagged[~flipped].mean() <= 0.005


def test_odds_are_honest() -> None:
    table, flipped = world(seed=3, right=(2, 1), rows=6_000)
    probability = np.array([one.odds / (1 + one.odds) for one in suspect_golds(table)])
    assert flipped[probability < 0.05].mean() < 0.05
    assert flipped[probability > 0.9].mean() > 0.9


def row(gold: int, other: int, rest: int = 0) -> dict[str, Any]:
    groups = [0] * gold + [1] * other + list(range(2, 2 + rest))
    return {"item": "x", "agrees": [group == 0 for group in groups], "groups": groups}


@pytest.mark.parametrize(
    ("counts", "flag"),
    [
        ((0, 16, 0), "gold_wrong"),
        ((16, 0, 0), ""),
        ((8, 8, 0), "gold_ambiguous"),
        ((7, 6, 3), "gold_ambiguous"),
        ((5, 11, 0), ""),
        ((0, 3, 13), ""),
        ((0, 4, 0), "gold_wrong"),
        ((0, 3, 0), ""),
        ((0, 0, 0), ""),
    ],
)
def test_counts_are_flagged_as_they_should_be(counts: tuple[int, int, int], flag: str) -> None:
    found = suspect_golds([row(*counts)], GoldErrors(right=(0.8, 4.0), wrong_share=0.05))[0]
    assert found.flag == flag
    assert found.rollouts == sum(counts)


def test_more_agreement_against_the_gold_is_never_less_suspicious() -> None:
    odds = [suspect_golds([row(16 - against, against)])[0].odds for against in range(17)]
    assert odds == sorted(odds)


def test_what_has_no_answer_or_no_verdict_counts_for_nothing() -> None:
    with_gaps = {"item": "x", "agrees": [None, True, False, False], "groups": [1, None, 2, 2]}
    found = suspect_golds([with_gaps])[0]
    assert (found.rollouts, found.majority_share, found.group) == (2, 1.0, 2)


def test_rows_come_out_as_they_went_in_and_nothing_gives_nothing() -> None:
    table, _ = world(seed=4, right=(4, 1), rows=150)
    assert [one.item for one in suspect_golds(table)] == [line["item"] for line in table]
    assert suspect_golds([]) == []


@pytest.mark.parametrize("theta", [0.1, 1.0, 20.0])
def test_the_largest_groups_chances_add_up_and_agree_with_what_is_known(theta: float) -> None:
    chances = np.exp(_largest_table(12, theta))
    assert chances.sum(axis=1) == pytest.approx(np.ones(13))
    assert chances[2, 2] == pytest.approx(1 / (1 + theta))
    assert chances[3, 1] == pytest.approx(theta**2 / ((1 + theta) * (2 + theta)))


@given(st.lists(st.tuples(st.booleans() | st.none(), st.integers(0, 5) | st.none()), max_size=12))
def test_any_row_is_told(answers: list[tuple[bool | None, int | None]]) -> None:
    line = {"item": "x", "agrees": [one[0] for one in answers], "groups": [one[1] for one in answers]}
    assert suspect_golds([line])[0].flag in ("", "gold_wrong", "gold_ambiguous")


def groups_of(kind: str, answers: Sequence[str | None]) -> list[int | None]:
    flow = grouped(kind, answers)
    try:
        effect = next(flow)
        while True:
            effect = flow.send([told(check) for check in effect])
    except StopIteration as stopped:
        made: list[int | None] = stopped.value
        return made


def told(check: Check) -> Verdict:
    return verify(check.kind, check.gold, check.answer, **check.options)


def test_answers_are_grouped_as_their_verifier_has_it() -> None:
    groups = groups_of("math", ["0.5", "1/2", "7", None, "\\frac{1}{2}", " 7 ", ""])
    assert groups[0] == groups[1] == groups[4]
    assert groups[2] == groups[5] != groups[0]
    assert groups[3] is groups[6] is None
    assert groups_of("exact", ["a", "A.", "b"])[:2] == [0, 0]
    assert groups_of("exact", []) == []
