"""Selection: each filter on both sides of its limit, the same in any order, and honest about what it cannot reach."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from synth.items import Item, Outcome, Sample, SampleKind
from synth.rows import Row
from synth.selection import Selection, select
from synth.selection.settings import Balance, Contamination, Difficulty, NearDuplicates, Traces
from synth.selection.traces import foreign_share, loop_characters, repeated_sentences

NUMBERS = ("seven", "eleven", "forty", "ninety", "sixty", "twelve", "thirty", "eighty", "fifty", "twenty")
WHEN = ("before", "after")
THINGS = ("sacks of flour", "loaves of rye", "copper coins", "grey stones", "apple trees", "wooden wheels", "old maps")


def row(number: int, answer: str = "", **changes: Any) -> Row:
    rng = random.Random(number)
    prompt = f"A {rng.choice(('miller', 'baker', 'farmer', 'sailor', 'tailor'))} " + " and ".join(
        f"counts {rng.choice(NUMBERS)} {rng.choice(THINGS)} {rng.choice(WHEN)} {rng.choice(('noon', 'dawn', 'dusk'))}"
        for _ in range(4)
    )
    item = Item(id=str(number), prompt=f"{prompt}, number {number}?", domain=changes.pop("domain", "sums"),
                language=changes.pop("language", "eng_Latn"))  # fmt: skip
    item = replace(item, **changes.pop("item", {}))
    text = answer or f"There are {number} of them in all."
    messages = ({"role": "user", "content": item.prompt}, {"role": "assistant", "content": text})
    sample = Sample(item=item.id, number=0, kind=SampleKind.CONVERSATION, keys=(), outcome=Outcome.ACCEPTED,
                    messages=messages, tokens=changes.pop("tokens", 10))  # fmt: skip
    sample = replace(sample, **changes.pop("sample", {}))
    return Row(sample=sample, item=item, task="t", **changes)


def reasons(rows: list[Row], **settings: Any) -> dict[str, str]:
    return select(lambda: iter(rows), Selection(**settings)).reasons


@pytest.mark.parametrize(
    ("rate", "judged", "reason"),
    [
        (0.25, 4, ""),
        (0.24, 4, "select.difficulty.hard"),
        (0.75, 4, ""),
        (0.76, 4, "select.difficulty.easy"),
        (1.0, 3, ""),
        (None, 0, ""),
    ],
)
def test_difficulty_keeps_both_ends_and_what_was_seldom_judged(rate: float | None, judged: int, reason: str) -> None:
    limits = Difficulty(min_pass_rate=0.25, max_pass_rate=0.75, min_judged=4)
    found = reasons([row(1, pass_rate=rate, judged=judged)], difficulty=limits)
    assert found.get("t/1/0", "") == reason


LONG = "The mill grinds the grain of the whole valley."


@pytest.mark.parametrize(
    ("answer", "changes", "rule"),
    [
        ("It is four.", {"tokens": 20}, ""),
        ("It is four.", {"tokens": 21}, "tokens"),
        ("It is four.", {"tokens": 0}, ""),
        (" ".join([LONG] * 3), {}, ""),
        (" ".join([LONG] * 4), {}, "repeated_sentences"),
        ("\n".join(f"{LONG}\nAnd then number {n} comes along here." for n in range(5)), {}, ""),
        ("\n".join(f"{LONG}\nAnd then number {n} comes along here." for n in range(6)), {}, "scattered_sentences"),
        ("Wait, " * 16, {}, ""),
        ("Wait, " * 18, {}, "loop"),
        ("The answer is четыре exactly as one would have expected it.", {}, "foreign_script"),
        ("The answer is four, \u03b1 and \u03b2, exactly as one would have expected it.", {}, ""),
        ("x" * 50, {}, ""),
        ("a b " * 13, {}, "paragraph"),
    ],
)
def test_degenerate_traces_go_by_the_rule_that_they_break(answer: str, changes: dict[str, Any], rule: str) -> None:
    wide = len(answer) > 60 or "a b" not in answer
    limits = Traces(
        max_tokens=20, max_repeated_sentences=3, max_scattered_sentences=5, max_duplicate_5gram_share=1.0,
        max_loop_characters=100, max_paragraph_characters=10_000 if wide else 51,
    )  # fmt: skip
    found = reasons([row(1, answer, **changes)], traces=limits).get("t/1/0", "")
    assert found == (f"select.traces.{rule}" if rule else "")


def test_repeated_5grams_go_above_their_share() -> None:
    text = "one two three four five six seven eight nine ten " * 5
    assert reasons([row(1, text)], traces=Traces(max_duplicate_5gram_share=0.5, max_loop_characters=10_000))
    assert not reasons([row(1, text)], traces=Traces(max_duplicate_5gram_share=1.0, max_loop_characters=10_000))


def test_a_prompt_in_another_script_may_be_answered_in_it() -> None:
    answer = "答案是四,因为二加二等于四。"
    asked = {"item": {"prompt": "二加二等于多少?"}}
    assert not reasons([row(1, answer, **asked)], traces=Traces())
    assert reasons([row(1, answer)], traces=Traces())


@given(st.text(max_size=200))
def test_any_text_has_figures(text: str) -> None:
    following, scattered = repeated_sentences(text)
    assert 1 <= following <= max(scattered, 1)
    assert 0 <= loop_characters(text) <= len(text)
    assert 0 <= foreign_share(text, "") <= 1


@given(st.text(alphabet="abc", min_size=1, max_size=7), st.integers(3, 20))
def test_what_is_repeated_three_times_is_a_loop(piece: str, times: int) -> None:
    assert loop_characters(f"zy{piece * times}") >= len(piece) * times - 2


def test_near_duplicates_take_all_samples_of_the_item_with_them() -> None:
    first = row(1)
    twin = row(2, item={"prompt": first.item.prompt.replace("number 1", "number 2")})
    rows = [first, twin, replace(twin, sample=replace(twin.sample, number=1)), row(3)]
    found = reasons(rows, near_duplicates=NearDuplicates(ngram=3, verify=0.8))
    assert set(found.values()) == {"select.near_duplicate"}
    assert len({name.split("/")[1] for name in found}) == 1
    assert not reasons(rows, near_duplicates=NearDuplicates(ngram=3, verify=1.0))


def test_contamination_is_found_in_prompt_answer_and_rubric(tmp_path: Path) -> None:
    question = (
        "If a train of eleven wagons leaves the old mill at noon, how many wheels pass the third bridge before dusk?"
    )
    benchmark = tmp_path / "exam.jsonl"
    benchmark.write_text(json.dumps({"id": "1", "prompt": question, "answer": "eighty-eight"}))
    rows = [
        row(1, item={"prompt": f"Think. {question}"}),
        row(2, f"Here is a question: {question} The answer is eighty-eight."),
        row(3, item={"options": {"rubric": f"{question} eighty-eight"}}),
        row(4),
    ]
    found = reasons(rows, contamination=Contamination(benchmarks=(str(benchmark),)))
    assert found == {
        f"t/{n}/0": f"select.contaminated.{part}" for n, part in ((1, "prompt"), (2, "answer"), (3, "rubric"))
    }


def test_balance_reaches_shares_of_tokens_and_tells_what_it_cannot() -> None:
    rows = [row(n, domain="sums" if n % 4 else "prose", tokens=10 + n % 7) for n in range(400)]
    targets = {"domain": {"sums": 0.5, "prose": 0.5}}
    made = select(lambda: iter(rows), Selection(balance=Balance(targets=targets)))
    assert made.balanced is not None
    assert made.balanced.residuals == ()
    assert made.balanced.shares["domain"]["prose"][1] == pytest.approx(0.5, abs=0.01)
    assert sum(one.item.domain == "prose" for one in rows if one.id not in made.reasons) == 100
    impossible = {"domain": {"sums": 0.5, "prose": 0.3, "code": 0.2}}
    told = select(lambda: iter(rows), Selection(balance=Balance(targets=impossible)))
    assert told.balanced is not None
    assert any(line.startswith("domain code: 0.000") for line in told.balanced.residuals)


def test_two_keys_are_balanced_together() -> None:
    rows = [
        row(n, domain="sums" if n % 3 else "prose", language="deu_Latn" if n % 5 == 0 else "eng_Latn")
        for n in range(600)
    ]
    targets = {"domain": {"sums": 0.5, "prose": 0.5}, "language": {"eng_Latn": 0.6, "deu_Latn": 0.4}}
    made = select(lambda: iter(rows), Selection(balance=Balance(targets=targets)))
    assert made.balanced is not None
    assert made.balanced.residuals == ()


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_general_data_has_its_share(share: float) -> None:
    rows = [row(n, domain="chat" if n % 2 else "sums") for n in range(300)]
    made = select(lambda: iter(rows), Selection(balance=Balance(general_domains=("chat",), general_share=share)))
    kept = [one for one in rows if one.id not in made.reasons]
    assert sum(one.item.domain == "chat" for one in kept) / len(kept) == pytest.approx(share, abs=0.01)


def test_order_changes_nothing_and_every_sample_is_somewhere() -> None:
    rows = [
        row(n % 50, domain="sums" if n % 4 else "prose", judged=8, pass_rate=(n % 9) / 8, sample={"number": n})
        for n in range(200)
    ]
    settings = Selection(
        difficulty=Difficulty(min_pass_rate=0.1, max_pass_rate=0.9), traces=Traces(), near_duplicates=NearDuplicates(),
        balance=Balance(targets={"domain": {"sums": 0.5, "prose": 0.5}}),
    )  # fmt: skip
    made = select(lambda: iter(rows), settings)
    shuffled = random.Random(3).sample(rows, len(rows))
    assert select(lambda: iter(shuffled), settings).reasons == made.reasons
    assert made.kept + sum(made.counts.values()) == len(rows)
    assert made.tokens == sum(one.sample.tokens for one in rows if one.id not in made.reasons)


def test_each_filter_is_compared_alone_and_as_the_last() -> None:
    rows = [row(1, tokens=100, judged=8, pass_rate=0.0), row(2, tokens=100, judged=8, pass_rate=0.5), row(3)]
    made = select(lambda: iter(rows), Selection(difficulty=Difficulty(min_pass_rate=0.1), traces=Traces(max_tokens=50)))
    told = {one["filter"]: one for one in made.comparison}
    assert (told["difficulty"]["alone"], told["difficulty"]["last"]) == (1, 0)
    assert (told["traces"]["alone"], told["traces"]["last"], told["traces"]["tokens"]) == (2, 1, 100)
    assert made.counts == {"select.difficulty.hard": 1, "select.traces.tokens": 1}


def test_rejected_samples_pass_untouched_and_kept_ones_are_the_same_rows() -> None:
    gone = row(1, sample={"outcome": Outcome.REJECTED, "reason": "verify.wrong"}, tokens=100)
    made = select(lambda: iter([gone, row(2), row(3, tokens=100)]), Selection(traces=Traces(max_tokens=50)))
    assert made.apply(gone) == gone
    assert made.apply(row(2)) == row(2)
    assert made.apply(row(3, tokens=100)).sample.reason == "select.traces.tokens"


@pytest.mark.parametrize(
    "settings",
    [
        {"targets": {"domain": {"sums": 0.5}}},
        {"targets": {"colour": {"red": 1.0}}},
        {"general_share": 0.1},
        {"general_domains": ("chat",)},
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Balance(**settings)
    with pytest.raises(ValidationError):
        Difficulty(min_pass_rate=0.6, max_pass_rate=0.5)


def test_nothing_selected_from_nothing() -> None:
    settings = Selection(
        traces=Traces(), near_duplicates=NearDuplicates(), balance=Balance(targets={"domain": {"a": 1.0}})
    )
    assert select(lambda: iter(()), settings).kept == 0
