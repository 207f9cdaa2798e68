"""What holds for every task, whatever a teacher replies: nothing is lost, it ends, and it asks the same again."""

from __future__ import annotations

import random
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.flows import Desk, Task
from synth.items import Item, Outcome
from synth.requests import Request
from synth.tasks import TASKS, load
from tests.synth.tasks.flow_driver import Said, drive, hostile, lost, salted, same, unsure

ITEM = Item(
    id="one", prompt="What is {{ 2 }} + 3?", text="Some text.\n\nOf two parts, {% raw %} and more.", gold="5",
    verifier="math", language="en",
)  # fmt: skip
SMALL: dict[str, dict[str, Any]] = {
    "self_instruct": {"instructions": 20, "requests": 2, "tasks": 2, "rounds": 5},
    "persona": {"tasks": 3},
    "magpie": {"count": 2},
    "process_labels": {"completions": 2},
    "translated": {"share": 1.0, "languages": ("fr", "de"), "into": "each"},
}
OURS = (
    "back_translation", "best_of", "distill", "evolve", "magpie", "persona", "preference", "process_labels",
    "self_instruct", "translated",
)  # fmt: skip


def task_and_items(kind: str, row: Item = ITEM) -> tuple[Task, list[Item]]:
    task: Task = load(kind)(**SMALL.get(kind, {}))
    return task, list(task.items([row]))


@pytest.mark.parametrize("kind", OURS)
@settings(max_examples=15, deadline=None)
@given(salt=st.integers(0, 10**6))
def test_hostile_replies_end_as_samples_with_reasons_and_none_is_lost(kind: str, salt: int) -> None:
    task, items = task_and_items(kind)
    for item in items:
        run = drive(task, item, salted(salt), unsure, Desk(seed=salt))
        assert run.samples
        assert not lost(run, run.requests)
        assert [sample.number for sample in run.samples] == sorted({sample.number for sample in run.samples})
        for sample in run.samples:
            assert sample.item == item.id
            assert (sample.outcome is Outcome.ACCEPTED) == (not sample.reason)
            assert sample.outcome is not Outcome.PENDING
            assert sample.reason == "" or sample.reason.count(".") == 1
            assert all(isinstance(value, int | float) for value in sample.figures.values())
            assert all(isinstance(value, str) for value in sample.facts.values())


@pytest.mark.parametrize("kind", OURS)
def test_the_same_replies_lead_to_the_same_requests_and_samples(kind: str) -> None:
    task, items = task_and_items(kind)
    for salt in range(3):
        first, second = (drive(task, items[0], salted(salt), unsure, Desk(seed=salt)) for _ in range(2))
        assert same(first, second)


@pytest.mark.parametrize("kind", OURS)
def test_a_flow_that_was_cut_asks_the_same_when_it_is_run_again(kind: str) -> None:
    task, items = task_and_items(kind)
    whole = drive(task, items[0], salted(1), unsure, Desk(seed=1))
    draw = random.Random(kind)
    for _ in range(3):
        cut = draw.randrange(len(whole.requests) + 1)
        asked: list[Request] = []

        def answer(request: Request, cut: int = cut, asked: list[Request] = asked) -> Said:
            if len(asked) == cut:
                raise KeyboardInterrupt
            asked.append(request)
            return salted(1)(request)  # type: ignore[no-any-return]

        if cut < len(set(whole.keys)):
            with pytest.raises(KeyboardInterrupt):
                drive(task, items[0], answer, unsure, Desk(seed=1))
        again = drive(task, items[0], salted(1), unsure, Desk(seed=1))
        assert again.keys == whole.keys


@pytest.mark.parametrize("kind", OURS)
@settings(max_examples=20, deadline=None)
@given(prompt=st.text(max_size=30), text=st.text(max_size=60), gold=st.none() | st.text(max_size=5))
def test_any_row_gets_an_answer(kind: str, prompt: str, text: str, gold: str | None) -> None:
    row = Item(id="x", prompt=prompt, text=text, gold=gold, verifier="math", options={"reference": 1, "question": "{{"})
    try:
        task, items = task_and_items(kind, row)
    except SynthError:
        # No seed at all is the recipe's mistake.
        assert kind == "self_instruct"
        assert not prompt.strip()
        return
    for item in items:
        assert drive(task, item, hostile, unsure).samples


@pytest.mark.parametrize("kind", OURS)
def test_a_class_is_named_as_recipes_write_it(kind: str) -> None:
    made = load(kind)
    assert made.name == kind
    assert made.version >= 1
    assert not {"name", "version"} & {field.name for field in fields(made)}


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(SynthError, match=r"task 'cook': no such kind; there are .*evolve"):
        load("cook")
    assert set(OURS) <= set(TASKS)
