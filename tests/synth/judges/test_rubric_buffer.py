"""Criteria go for what they score, never for their age; those written beforehand never go."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.judges import Buffer, Criterion, Judge, propose, retain
from synth.replies import Reply

OLD = tuple(Criterion(text=f"criterion {at}") for at in range(8))
FIRM = (Criterion(text="always"),)


def texts(criteria: tuple[Criterion, ...]) -> list[str]:
    return [one.text.removeprefix("criterion ") for one in criteria]


def test_a_criterion_that_tells_nothing_apart_is_put_away_and_the_cap_holds_by_spread() -> None:
    buffer = Buffer(persistent=FIRM, active=OLD)
    spread = {OLD[at].id: [0, at / 4] for at in range(8)}
    kept = retain(buffer, {**spread, FIRM[0].id: [1, 1]}, max_active=3)
    assert texts(kept.active) == ["5", "6", "7"]
    assert texts(kept.inactive) == ["0", "1", "2", "3", "4"]
    assert kept.persistent == FIRM


def test_of_two_alike_the_older_stays() -> None:
    kept = retain(Buffer(active=OLD[:3]), {one.id: [0, 2] for one in OLD[:3]}, max_active=2)
    assert texts(kept.active) == ["0", "1"]


@pytest.mark.parametrize("given_scores", [[], [2], [None, None, None], [1, None]])
def test_a_criterion_that_was_not_scored_is_not_put_away_for_its_age(given_scores: list[float | None]) -> None:
    scores = {OLD[0].id: given_scores, **{one.id: [0, 2] for one in OLD[1:6]}}
    kept = retain(Buffer(active=OLD[:6]), scores, max_active=5)
    assert texts(kept.active) == ["0", "1", "2", "3", "4", "5"]
    after = retain(kept, {one.id: [0, 2] for one in OLD[1:6]} | {OLD[0].id: [1, 1]}, max_active=5)
    assert texts(after.active) == ["1", "2", "3", "4", "5"]


def test_of_criteria_that_nobody_ever_scores_only_the_newest_stay() -> None:
    kept = retain(Buffer(active=OLD), {}, max_new=5)
    assert texts(kept.active) == ["3", "4", "5", "6", "7"]


def test_unscored_is_not_0_for_the_spread() -> None:
    kept = retain(Buffer(active=OLD[:1]), {OLD[0].id: [2, None, 2]})
    assert kept.inactive == OLD[:1]


@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(0, 2)), max_size=4), min_size=8, max_size=8), st.integers(1, 6)
)
def test_none_is_lost_the_persistent_stay_and_the_scored_keep_to_the_cap(
    rows: list[list[int | None]], cap: int
) -> None:
    scores = {one.id: row for one, row in zip(OLD, rows, strict=True)}
    kept = retain(Buffer(persistent=FIRM, active=OLD), scores, max_active=cap)
    assert kept.persistent == FIRM
    assert sorted(texts(kept.active) + texts(kept.inactive)) == sorted(texts(OLD))
    measured = [one for one in kept.active if sum(value is not None for value in scores[one.id]) >= 2]
    assert len(measured) <= cap
    assert all(len({value for value in scores[one.id] if value is not None}) > 1 for one in measured)


def proposed(reply: str, buffer: Buffer) -> Buffer:
    flow = propose(Judge(), "q", ["an answer", "another"], buffer)
    effect = next(flow)
    try:
        while True:
            effect = flow.send([Reply(key="k", text=reply, finish_reason="stop") for _ in effect])
    except StopIteration as stopped:
        made: Buffer = stopped.value
        return made


def test_new_criteria_are_added_but_none_that_was_there_in_whatever_state() -> None:
    buffer = Buffer(persistent=FIRM, active=OLD[:1], inactive=OLD[1:2])
    said = [{"text": text, "weight": 1} for text in ("Always", "criterion 0", "CRITERION  1", "new", "new")]
    said.append({"text": "boasts", "weight": -1})
    after = proposed(json.dumps({"criteria": said}), buffer)
    assert [(one.text, one.weight) for one in after.active[1:]] == [("new", 1.0), ("boasts", -1.0)]


@pytest.mark.parametrize(
    "reply",
    ["", "no JSON", '{"criteria": "x"}', '{"criteria": [{"text": ""}]}', '{"criteria": [{"text": "a", "weight": 9}]}'],
)
def test_a_proposal_that_cannot_be_read_changes_nothing(reply: str) -> None:
    buffer = Buffer(persistent=FIRM, active=OLD[:2])
    assert proposed(reply, buffer) == buffer


def test_a_proposal_adds_no_more_than_it_may() -> None:
    said = json.dumps({"criteria": [{"text": f"new {at}", "weight": 1} for at in range(9)]})
    assert len(proposed(said, Buffer()).active) == 5
