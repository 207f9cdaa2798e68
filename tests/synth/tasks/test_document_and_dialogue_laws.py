"""What holds for tasks on documents, critique, rubrics and dialogues, whatever a teacher replies."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.flows import Desk, Task
from synth.items import Item, Outcome
from synth.running import Synth
from synth.running.works import works_of
from synth.tasks import TASKS, load
from synth.tasks.critique_constitution import principles, specification
from tests.synth.tasks.flow_driver import drive, hostile, lost, salted, same, unsure
from tests.synth.tasks.test_task_laws import OURS as OTHERS

TEXT = "Ada Lovelace wrote 3 notes in London in 1843. They describe machines of great subtlety.\n\n" * 6
ITEM = Item(
    id="one", prompt="What is {{ 2 }} + 3?", text=f"{TEXT}{{% raw %}} and more.", gold="5", verifier="math",
    options={
        "rubrics": ["It says five.", {"text": "It rambles.", "weight": -1}],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
        "goal": [{"calls": "add", "at_least": 1}],
    },
)  # fmt: skip
SMALL: dict[str, dict[str, Any]] = {
    "deliberate": {"replies": 2},
    "multi_turn": {"conversations": 3},
    "question_answer": {"chunk_characters": 200, "reading": {}},
    "tools": {"trajectories": 3, "simulator": {}, "user": {}},
    "rephrase": {"chunk_characters": 200, "styles": ("easy", "diverse_qa")},
}
OURS = (
    "critique", "deliberate", "education", "multi_turn", "question_answer", "rephrase", "rubric", "tools",
    "verify_revise",
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
@settings(max_examples=10, deadline=None)
@given(salt=st.integers(0, 10**6))
def test_the_same_replies_lead_to_the_same_requests_and_samples(kind: str, salt: int) -> None:
    task, items = task_and_items(kind)
    for item in items:
        first, second = (drive(task, item, salted(salt), unsure, Desk(seed=salt)) for _ in range(2))
        assert same(first, second)


@pytest.mark.parametrize("kind", OURS)
def test_each_kind_stands_in_a_recipe_and_its_fingerprint_is_stable(kind: str) -> None:
    told = {"tasks": ({"kind": kind, **SMALL.get(kind, {})},)}
    first, second = (works_of(Synth(**told))[0].fingerprint() for _ in range(2))  # type: ignore[arg-type]
    assert first == second


def test_another_constitution_or_template_is_another_task(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("- {id: a, critique: b, revision: c}\n")
    (tmp_path / "spec.txt").write_text("Be brief.")

    def print_of(**task: Any) -> bytes:
        return works_of(Synth(tasks=(task,)))[0].fingerprint()

    for kind, setting, file in (("critique", "principles", mine), ("deliberate", "specification", "spec.txt")):
        before = print_of(kind=kind, **{setting: str(tmp_path / file)})
        (tmp_path / file).write_text("- {id: a, critique: b, revision: d}\n")
        principles.cache_clear()
        specification.cache_clear()
        assert print_of(kind=kind, **{setting: str(tmp_path / file)}) != before
    assert print_of(kind="rephrase", styles=("easy",)) != print_of(kind="rephrase", styles=("hard",))


@pytest.mark.parametrize("kind", OURS)
@settings(max_examples=20, deadline=None)
@given(prompt=st.text(max_size=30), text=st.text(max_size=60), gold=st.none() | st.text(max_size=5))
def test_any_row_gets_an_answer(kind: str, prompt: str, text: str, gold: str | None) -> None:
    row = Item(id="x", prompt=prompt, text=text, gold=gold, verifier="math", options={"reference": 1, "question": "{{"})
    task, items = task_and_items(kind, row)
    for item in items:
        assert drive(task, item, hostile, unsure).samples


@pytest.mark.parametrize("kind", OURS)
def test_a_class_is_named_as_recipes_write_it(kind: str) -> None:
    made = load(kind)
    assert made.name == kind
    assert made.version >= 1
    assert not {"name", "version"} & {field.name for field in fields(made)}


def test_every_kind_is_held_to_the_laws() -> None:
    assert sorted((*OURS, *OTHERS)) == sorted(TASKS)
