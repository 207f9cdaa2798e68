"""The problems that the small teacher is tried on: as many as asked, the same for a seed, each with its answer."""

from __future__ import annotations

import re

import pytest

from demo.word_problems import problems


@pytest.mark.parametrize("count", [0, 1, 24, 200])
def test_as_many_as_asked_and_no_prompt_twice(count: int) -> None:
    made = list(problems(count))
    assert len(made) == count
    assert len({row["prompt"] for row in made}) == count
    assert len({row["id"] for row in made}) == count
    assert made == list(problems(count))


def test_answers_follow_from_the_numbers() -> None:
    for row in problems(100, seed=3):
        numbers = [int(found) for found in re.findall(r"\d+", row["prompt"])]
        answer = {
            "add": lambda a, b: a + b,
            "subtract": lambda a, b: a - b,
            "multiply": lambda a, b: a * b,
            "divide": lambda people, goods: goods // people,
            "two_steps": lambda bags, each, more: bags * each + more,
        }[row["skill"]](*numbers)
        assert row["gold"] == str(answer)
