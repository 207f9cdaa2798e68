"""Benchmark items in texts: what counts as found, on both sides of each rule, and real items planted in real books."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dedup import ContaminationIndex
from dedup.benchmarks import BenchmarkError, Item, read_items

LONG = " ".join(f"word{number}" for number in range(60))
MIDDLE = " ".join(f"term{number}" for number in range(12))
FILLER = " ".join(f"filler{number}" for number in range(200))

ITEMS = [
    {"bench": "long", "id": "1", "prompt": LONG, "answer": "7"},
    {"bench": "middle", "id": "2", "prompt": MIDDLE},
    {"bench": "math", "id": "3", "prompt": "Evaluate $\\log_21$.", "answer": "0"},
    {"bench": "math", "id": "4", "prompt": "(1+i)^10 =", "answer": "3", "choices": ["1", "i", "32", "32i"]},
    {
        "bench": "quiz",
        "id": "5",
        "prompt": "Neural networks:",
        "answer": "1",
        "choices": ["A) are trained", "B) can mix"],
    },
    {"bench": "quiz", "id": "6", "prompt": "What is a nop sled", "answer": "B", "choices": ["a slide", "a sequence"]},
    {"bench": "quiz", "id": "7", "prompt": "Paris", "answer": "France"},
]
INDEX = ContaminationIndex(ITEMS)


def found(text: str) -> set[str]:
    return {row["item"] for row in INDEX.check([text]).to_pylist()}


@pytest.mark.parametrize(
    ("text", "items"),
    [
        (LONG, {"1"}),
        (f"{FILLER} {LONG} {FILLER}", {"1"}),
        (f"{FILLER} {LONG.upper().replace(' ', ', ')}! {FILLER}", {"1"}),
        (LONG.replace(" ", "\n"), {"1"}),
        (" ".join(LONG.split()[:36]), {"1"}),  # 36 of 60 words: the share 0.6
        (" ".join(LONG.split()[:35]), set()),
        (" ".join(LONG.split()[:30]) + " between " + " ".join(LONG.split()[31:]), {"1"}),
        (" ".join(LONG.split()[:18]) + f" {FILLER} " + " ".join(LONG.split()[18:36]), set()),  # not close together
        (MIDDLE, {"2"}),
        (" ".join(MIDDLE.split()[:11]), set()),  # up to 16 words, all of them
        ("See: evaluate  $\\log_21$ now", {"3"}),
        ("evaluate log_21", set()),  # too few words without their symbols
        ("then (1+i)^10 is", set()),  # common, and no answer
        ("then (1+i)^10 is 32i", {"4"}),
        ("for (i = 1; i < 10; i++) 32", set()),  # the words of it, with other symbols
        ("neural networks are nice", set()),
        ("Neural networks can mix things", {"5"}),  # a choice, without its letter
        ("Neural networks: 1", {"5"}),  # the position of the choice right after it
        ("Neural networks and 1", set()),
        ("what is a NOP-sled?", {"6"}),  # five words say enough
        ("what is a nop", set()),
        ("Paris France", set()),  # one word is never looked for
        ("", set()),
        ("... !!!", set()),
    ],
)
def test_what_counts_as_found(text: str, items: set[str]) -> None:
    assert found(text) == items


def test_a_match_says_where_it_stands_in_code_points() -> None:
    text = "\u00e9\u4e2d\U0001f600 " + LONG + " \u00e9 end"
    (row,) = INDEX.check(["", text]).to_pylist()
    assert row == {"row": 1, "benchmark": "long", "item": "1", "score": 1.0, "start": 4, "end": 4 + len(LONG)}
    assert text[row["start"] : row["end"]] == LONG


def test_the_place_is_narrow_even_where_parts_of_the_item_stand_before_it() -> None:
    text = f"{' '.join(LONG.split()[:20])} and {LONG} and {LONG}"
    (row,) = INDEX.check([text]).to_pylist()
    assert text[row["start"] : row["end"]] == LONG


def test_several_items_come_best_first() -> None:
    text = f"{' '.join(LONG.split()[:40])} and {MIDDLE}"
    rows = INDEX.check([text]).to_pylist()
    assert [row["item"] for row in rows] == ["2", "1"]
    assert rows[1]["score"] == pytest.approx(40 / 60)


def test_boilerplate_that_many_items_share_tells_nothing() -> None:
    imports = " ".join(f"import{number}" for number in range(30))
    own = [" ".join(f"own{item}x{number}" for number in range(12)) for item in range(12)]
    index = ContaminationIndex([{"prompt": f"{imports} {words}"} for words in own], max_items=10)
    assert index.check([imports]).num_rows == 0
    assert index.check([f"{imports} {own[3]}"]).column("item").to_pylist() == ["3"]
    assert ContaminationIndex([{"prompt": imports, "answer": str(n)} for n in range(3)]).check([imports]).num_rows == 3


def test_a_short_question_that_others_contain_needs_its_answer() -> None:
    stem = "Which of the following is true"
    items = [
        {"prompt": f"{stem}{rest}", "answer": f"answer{n}"}
        for n, rest in enumerate(["?", " of cats?", " of dogs?", " here?", " now?"])
    ]
    index = ContaminationIndex(items)
    assert index.check([f"{stem}? We do not know."]).num_rows == 0
    assert index.check([f"{stem}? Answer0."]).column("item").to_pylist() == ["0"]
    assert index.check([f"{stem} of cats?"]).column("item").to_pylist() == ["1"]


def test_what_cannot_be_looked_for_is_told() -> None:
    index = ContaminationIndex(
        [{"prompt": "?!"}, {"prompt": "Paris", "answer": "x"}, {"prompt": "two words"}, {"prompt": LONG}]
    )
    assert [item.id for item in index.unusable] == ["0", "1", "2"]


def test_an_index_of_nothing_finds_nothing() -> None:
    assert ContaminationIndex([]).check([LONG]).num_rows == 0
    assert ContaminationIndex([]).check([]).column_names == ["row", "benchmark", "item", "score", "start", "end"]


def test_bad_items_and_settings_are_refused() -> None:
    with pytest.raises(BenchmarkError, match="items row 1: no prompt; one of prompt, question"):
        ContaminationIndex([{"prompt": "a"}, {"answer": "b"}])
    with pytest.raises(ValidationError):
        ContaminationIndex([], ngram=1)


@given(st.lists(st.text(max_size=60), max_size=6))
@settings(max_examples=50, deadline=None)
def test_any_text_gets_an_answer(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    for row in INDEX.check(texts).to_pylist():
        assert 0 <= row["start"] < row["end"] <= len(texts[row["row"]])


def test_hostile_repetition_takes_linear_time() -> None:
    (row,) = INDEX.check([" ".join([MIDDLE] * 20_000)]).to_pylist()
    assert row["end"] - row["start"] == len(MIDDLE)
    assert INDEX.check(["neural networks " * 200_000]).num_rows == 0


# Real items in real texts.


@pytest.fixture(scope="module")
def items(shared: Path) -> list[Item]:
    return list(read_items([str(path) for path in sorted((shared / "benchmarks").glob("*.jsonl.gz"))]))


@pytest.fixture(scope="module")
def index(items: list[Item]) -> ContaminationIndex:
    return ContaminationIndex(items)


@pytest.fixture(scope="module")
def pieces(shared: Path) -> list[str]:
    """3,000 clean pieces of 300 words, spread over the books, manuals, entries, questions, mathematics and code."""
    out: list[str] = []
    draw = random.Random(3)
    for name in ("books_en", "techdoc_en", "encyclopedia_en", "faq_en", "math_en", "code_python"):
        with gzip.open(shared / "text" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            words = " ".join(json.loads(line)["text"] for line in lines).split(" ")
        out.extend(" ".join(words[at : at + 300]) for at in (draw.randrange(len(words) - 300) for _ in range(500)))
    return out


def planted(item: str, piece: str, draw: random.Random) -> str:
    words = piece.split(" ")
    at = draw.randrange(len(words) + 1)
    return " ".join([*words[:at], item, *words[at:]])


def misses(index: ContaminationIndex, items: list[Item], texts: list[str]) -> list[Item]:
    rows = index.check(texts).to_pylist()
    got = {(row["row"], row["benchmark"], row["item"]) for row in rows}
    return [item for number, item in enumerate(items) if (number, item.bench, item.id) not in got]


def test_no_false_positive_among_clean_pieces(index: ContaminationIndex, pieces: list[str]) -> None:
    assert len(pieces) == 3000
    assert index.check(pieces).to_pylist() == []


def with_answer(item: Item) -> str:
    return f"{item.prompt}\n{random.Random(item.id).choice(item.answers)}" if item.answers else item.prompt


FORMS: dict[str, Any] = {
    "prompt and answer": with_answer,
    "prompt and index of the answer": lambda item: f"{item.prompt} {item.index}" if item.index else with_answer(item),
    "wrapped at eight words": lambda item: "\n".join(
        " ".join(words[at : at + 8]) for words in [with_answer(item).split()] for at in range(0, len(words), 8)
    ),
    "upper case": lambda item: with_answer(item).upper(),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_verbatim_items_are_found(
    form: str, index: ContaminationIndex, items: list[Item], pieces: list[str]
) -> None:
    draw = random.Random(form)
    sample = items if form == "prompt and answer" else draw.sample(items, 4000)
    texts = [planted(FORMS[form](item), draw.choice(pieces), draw) for item in sample]
    assert misses(index, sample, texts) == []


def test_prompts_alone_are_found_but_for_those_that_say_nothing(
    index: ContaminationIndex, items: list[Item], pieces: list[str]
) -> None:
    draw = random.Random(7)
    missed = misses(index, items, [planted(item.prompt, draw.choice(pieces), draw) for item in items])
    assert {item.bench for item in missed} <= {"mmlu_stem_test"}
    assert len(missed) <= 32


def test_other_punctuation_hides_only_the_shortest(
    index: ContaminationIndex, items: list[Item], pieces: list[str]
) -> None:
    draw = random.Random(9)
    sample = draw.sample([item for item in items if item.bench not in ("college_math", "carp_en")], 4000)

    def stripped(item: Item) -> str:
        return "".join(c if c.isalnum() or c == "_" else " " for c in with_answer(item)).title()

    missed = misses(index, sample, [planted(stripped(item), draw.choice(pieces), draw) for item in sample])
    assert len(missed) < 0.02 * len(sample)
