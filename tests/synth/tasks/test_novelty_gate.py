"""The novelty gate's decisions are those of ROUGE-L against every text, in whatever order texts come."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth.tasks.novelty import Pool, admitted, common_subsequence, rouge_l, words_of

words = st.lists(st.integers(0, 6), max_size=14).map(tuple)


def plain_subsequence(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """By the textbook's table."""
    row = [0] * (len(second) + 1)
    for one in first:
        before = row[:]
        for at, two in enumerate(second):
            row[at + 1] = before[at] + 1 if one == two else max(before[at + 1], row[at])
    return row[-1]


@given(words, words)
def test_the_fast_subsequence_is_as_long_as_the_textbooks(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    assert common_subsequence(first, second) == plain_subsequence(first, second)
    assert rouge_l(first, second) == rouge_l(second, first)


@given(st.lists(words, max_size=12), words, st.sampled_from([0.1, 0.5, 0.7, 1.0]))
def test_the_index_decides_as_a_comparison_with_all_does(
    texts: list[tuple[int, ...]], new: tuple[int, ...], bound: float
) -> None:
    pool = Pool(bound)
    for text in texts:
        pool.add(text)
    assert (pool.nearest(new) > 0) == any(rouge_l(new, text) >= bound for text in texts)


@settings(deadline=None)
@given(st.lists(st.text("ab c", max_size=12), max_size=8), st.randoms())
def test_what_is_admitted_does_not_depend_on_the_order(texts: list[str], order: random.Random) -> None:
    def outcome(batch: list[str]) -> list[tuple[str, str | None]]:
        return sorted(zip(batch, admitted(Pool(0.7), batch), strict=True), key=repr)

    shuffled = texts[:]
    order.shuffle(shuffled)
    assert outcome(texts) == outcome(shuffled)


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("Name seven colours of the rainbow now", "name SEVEN colours of the rainbow, now!", 1.0),
        ("a b c d e f g", "a b c d e f x", 12 / 14),
        ("a b c d", "x y z", 0.0),
        ("a b c d", "d c b a", 2 / 8),
        ("写一首关于春天的诗", "写一首关于秋天的诗", 16 / 18),
        ("", "a", 0.0),
    ],
)
def test_likeness_is_by_words_in_any_script(first: str, second: str, alike: float) -> None:
    one, two = words_of([first, second])
    assert rouge_l(one, two) == pytest.approx(alike)


@pytest.mark.parametrize(("bound", "reason"), [(12 / 14, "novelty.rouge_l"), (0.86, None)])
def test_the_bound_itself_is_too_alike(bound: float, reason: str | None) -> None:
    pool = Pool(bound)
    assert admitted(pool, ["a b c d e f g"]) == [None]
    assert admitted(pool, ["a b c d e f x"]) == [reason]


@settings(deadline=None)
@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    assert admitted(Pool(0.7), [text])[0] in (None, "instruction.no_words")


def test_twenty_thousand_texts_are_gone_through_within_seconds() -> None:
    draw = random.Random(1)
    vocabulary = [f"word{int(20 * draw.paretovariate(0.7))}" for _ in range(5000)]
    texts = [" ".join(draw.choices(vocabulary, k=draw.randint(6, 30))) for _ in range(20_000)]
    pool = Pool(0.7)
    began = time.process_time()
    reasons = admitted(pool, texts)
    assert reasons.count(None) == len(pool)
    assert time.process_time() - began < 20
