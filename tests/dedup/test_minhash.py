"""Near-duplicates: what goes, for whom, and that both forms decide alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dedup import Minhash, near_duplicates
from dedup.order import ties

Verdict = Callable[..., Any]

WORDS = [f"word{number}" for number in range(400)]


def jaccard(left: str, right: str, ngram: int = 5) -> float:
    def shingles(text: str) -> set[tuple[str, ...]]:
        words = text.lower().split()
        return {tuple(words[i : i + ngram]) for i in range(max(len(words) - ngram + 1, 1))}

    a, b = shingles(left), shingles(right)
    return len(a & b) / len(a | b)


def swapped(words: list[str], *at: int) -> list[str]:
    """The words with other ones at these places: each place costs up to five shingles."""
    return [f"othr{i}" if i in at else word for i, word in enumerate(words)]


def as_rows(table: pa.Table) -> dict[str, tuple[str, float]]:
    return {row["id"]: (row["kept_id"], row["similarity"]) for row in table.to_pylist()}


def test_a_near_duplicate_goes_and_its_similarity_is_exact(verdict: Verdict) -> None:
    texts = [" ".join(WORDS), " ".join(swapped(WORDS[:-3], 100)), "quite another text of some more words than five"]
    out = verdict(Minhash(), texts, ids=["0" * 31 + c for c in "abc"])
    assert out.removed == {"0" * 31 + "b": ("0" * 31 + "a", jaccard(texts[0], texts[1]))}
    assert [(row["rule"], row["threshold"]) for row in out.rows] == [("near_duplicate", 0.8)]
    assert out.survivors == {"0" * 31 + "a": (2, None)}


def test_a_chain_merges_nothing_that_is_unlike(verdict: Verdict) -> None:
    # Each is like the next, and the first is not like the third.
    a = WORDS
    b = swapped(a, *range(10, 100, 10))[:-1]
    c = swapped(b, *range(15, 105, 10))[:-1]
    texts = [" ".join(words) for words in (a, b, c)]
    assert jaccard(texts[0], texts[1]) >= 0.75 and jaccard(texts[1], texts[2]) >= 0.75  # noqa: PT018
    assert jaccard(texts[0], texts[2]) < 0.75
    ids = ["a" * 32, "b" * 32, "c" * 32]
    out = verdict(Minhash(verify=0.75, bands=28, rows=4), texts, ids=ids)
    assert out.removed == {ids[1]: (ids[0], jaccard(texts[0], texts[1]))}


def test_the_survivor_named_is_the_most_similar_kept_one() -> None:
    a, b = swapped(WORDS, *range(0, 100, 10)), swapped(WORDS, *range(200, 300, 10))
    middle = swapped(WORDS[:-1], *range(0, 100, 20))
    table = near_duplicates(
        [" ".join(words) for words in (a, b, middle)], ["a", "b", "m"], verify=0.78, bands=28, rows=4
    )
    assert jaccard(" ".join(a), " ".join(b)) < 0.78
    assert as_rows(table) == {"m": ("a", jaccard(" ".join(a), " ".join(middle)))}


@pytest.mark.parametrize(("verify", "goes"), [(0.8, True), (0.8000001, False), (0.7999999, True)])
def test_the_boundary_is_in(verify: float, goes: bool) -> None:
    # Four of five unigrams are shared: Jaccard 4/5 to the bit.
    table = near_duplicates(["a b c d e", "a b c d"], ngram=1, verify=verify, bands=60, rows=2)
    assert table.num_rows == goes


def test_short_texts_are_compared_whole_and_texts_without_words_left_alone(verdict: Verdict) -> None:
    texts = ["one two three", "One, two: three!", "one two four", "", "", "...", "..."]
    out = verdict(Minhash(), texts)
    assert len(out.removed) == 1
    assert [similarity for _, similarity in out.removed.values()] == [1.0]
    assert near_duplicates(texts).num_rows == 1


@pytest.mark.parametrize(("keep", "stays"), [("longest", "b"), ("first_id", "a"), ("earliest", "c"), ("latest", "b")])
def test_the_keep_policy_says_who_stays(keep: Any, stays: str, verdict: Verdict) -> None:
    texts = [" ".join(WORDS[2:]), " ".join(WORDS), " ".join(WORDS[1:])]
    dates = pa.array(
        [None, datetime(2024, 1, 2, tzinfo=UTC), datetime(2023, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC")
    )
    out = verdict(Minhash(keep=keep), texts, ids=[c * 32 for c in "abc"], date=dates)
    assert set(out.removed) == {c * 32 for c in "abc"} - {stays * 32}
    assert out.survivors == {stays * 32: (3, datetime(2023, 1, 2, tzinfo=UTC))}


def test_copies_add_up_over_steps(verdict: Verdict) -> None:
    texts = [" ".join(WORDS), " ".join(WORDS[1:]), "alone with some words"]
    seen = pa.array([None, datetime(2020, 5, 6, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    out = verdict(
        Minhash(), texts, ids=["a" * 32, "b" * 32, "c" * 32], copies=pa.array([2, 40, 7], pa.int32()), first_seen=seen
    )
    assert out.survivors == {"a" * 32: (42, datetime(2020, 5, 6, tzinfo=UTC))}


def test_equal_lengths_break_by_id_wherever_the_rows_are(verdict: Verdict) -> None:
    texts = [" ".join(["xx", *WORDS[1:]]), " ".join(["yy", *WORDS[1:]]), " ".join(["zz", *WORDS[1:]])]
    ids = ["f" * 32, "0" * 32, "8" * 32]
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        out = verdict(Minhash(), [texts[i] for i in order], ids=[ids[i] for i in order], shards=2)
        assert {kept for kept, _ in out.removed.values()} == {"0" * 32}
        assert set(out.removed) == {"f" * 32, "8" * 32}


def test_ids_sort_as_ties_whether_hex_or_not() -> None:
    ids = ["0" * 32, "0" * 31 + "1", "0" * 15 + "1" + "f" * 16, "7" + "0" * 31, "8" + "0" * 31, "f" * 32]
    assert ties(pa.array(ids)).tolist() == sorted(ties(pa.array(ids)).tolist())
    others = ["doc-1", "doc-2", "", "F" * 32]
    assert len({tuple(tie) for tie in ties(pa.array([*others, *ids])).tolist()}) == len(others) + len(ids)


def corpus(seed: int, size: int) -> list[str]:
    """Families of texts with a few changes each, short and equal ones among them."""
    draw = random.Random(seed)
    texts: list[str] = []
    while len(texts) < size:
        base = [f"w{draw.randrange(300)}" for _ in range(draw.choice([3, 12, 60, 200]))]
        for _ in range(draw.randrange(1, 6)):
            words = list(base)
            for _ in range(draw.randrange(0, 5)):
                words[draw.randrange(len(words))] = f"v{draw.randrange(1000)}"
            texts.append(" ".join(words))
    return texts[:size]


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(0, 40),
    verify=st.sampled_from([0.5, 0.8]),
    keep=st.sampled_from(["longest", "first_id"]),
    leaders=st.integers(1, 3),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_step_and_the_plain_form_decide_alike(
    seed: int, size: int, verify: float, keep: Any, *, leaders: int, verdict: Verdict
) -> None:
    texts = corpus(seed, size)
    ids = [f"{random.Random(seed + n).getrandbits(128):032x}" for n in range(size)]
    step = Minhash(verify=verify, keep=keep, leaders=leaders)
    out = verdict(step, texts, ids=ids, shards=1 + seed % 3)
    table = near_duplicates(texts, ids, verify=verify, keep=keep, leaders=leaders)
    assert out.removed == as_rows(table)
    text_of = dict(zip(ids, texts, strict=True))
    for gone, (kept, similarity) in out.removed.items():
        assert kept not in out.removed
        assert similarity == jaccard(text_of[gone], text_of[kept]) >= verify
    assert sum(copies for copies, _ in out.survivors.values()) == len(out.removed) + len(out.survivors)


def test_any_order_of_the_texts_gives_the_same_answer() -> None:
    texts = corpus(5, 60)
    ids = [f"{random.Random(n).getrandbits(128):032x}" for n in range(60)]
    once = as_rows(near_duplicates(texts, ids, verify=0.6))
    assert once
    order = random.Random(1).sample(range(60), 60)
    assert as_rows(near_duplicates([texts[i] for i in order], [ids[i] for i in order], verify=0.6)) == once


def test_a_hundred_thousand_equal_texts_cost_one_comparison_each(verdict: Verdict) -> None:
    texts = ["one and the same text of a few words"] * 100_000
    out = verdict(Minhash(), texts)
    assert len(out.removed) == 99_999
    assert [copies for copies, _ in out.survivors.values()] == [100_000]


def test_a_group_of_thousands_is_compared_in_linear_time() -> None:
    # All share most of their words, and none is like another enough: every band has one large group.
    texts = [" ".join([*WORDS[:80], *(f"own{number}x{i}" for i in range(30))]) for number in range(3000)]
    assert near_duplicates(texts, verify=0.9, leaders=4).num_rows == 0


def test_ids_of_another_length_and_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="2 ids for 1 texts"):
        near_duplicates(["a"], ["x", "y"])
    with pytest.raises(ValueError, match="keep='latest' needs dates"):
        near_duplicates(["a"], keep="latest")
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        Minhash(verify=1.5)
    with pytest.raises(ValidationError, match="unexpected_keyword_argument"):
        Minhash(bandz=3)


def test_no_texts_give_an_empty_answer(verdict: Verdict) -> None:
    assert near_duplicates([]).num_rows == 0
    assert near_duplicates([]).column_names == ["id", "kept_id", "similarity"]
    assert verdict(Minhash(), []).removed == {}


def test_one_giant_text_is_compared_like_any_other(verdict: Verdict) -> None:
    giant = [f"g{number}" for number in range(200_000)]
    texts = [" ".join(giant), " ".join(giant[:-1]), "small text of some words"]
    out = verdict(Minhash(), texts, ids=["a" * 32, "b" * 32, "c" * 32])
    assert out.removed == {"b" * 32: ("a" * 32, 199_995 / 199_996)}


@pytest.mark.heavy
def test_spark_decides_as_duckdb_does(verdict: Verdict) -> None:
    from jobs.engines.spark import SparkEngine

    texts = corpus(11, 300)
    here = verdict(Minhash(verify=0.6), texts)
    engine = SparkEngine(workers=2, memory_bytes=1 << 28)
    try:
        there = verdict(Minhash(verify=0.6), texts, shuffle=engine.shuffle())
    finally:
        engine.close()
    assert here.removed == there.removed
    assert here.survivors == there.survivors
