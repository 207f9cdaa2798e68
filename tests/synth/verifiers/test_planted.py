"""Planted answers: known right and wrong by how they are made, so that a verifier's own errors can be told."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.items import Item
from synth.verdicts import Outcome, Verdict
from synth.verifiers import verify
from synth.verifiers.planted import Plant, plant, plantable, planted_rates
from synth.verifiers.planted_answers import PLANTERS, number, spellings
from synth.verifiers.rates import rate


def benchmark(shared: Path, name: str) -> list[dict[str, object]]:
    with gzip.open(shared / "benchmarks" / f"{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def items(shared: Path) -> list[Item]:
    made = []
    for name in ("gsm8k_test", "math_test", "svamp"):
        made += [
            Item(id=f"{name}/{row['id']}", gold=str(row["answer"]), verifier="math") for row in benchmark(shared, name)
        ]
    for name in ("mmlu_stem_test", "aqua"):
        for row in benchmark(shared, name):
            options = {"choices": row["choices"]}
            made.append(Item(id=f"{name}/{row['id']}", gold=row["answer"], verifier="choice", options=options))
    parts = ("whole", "marked", "last_line")
    for at, row in enumerate(benchmark(shared, "mmlu_stem_test")):
        gold = row["choices"][row["answer"]]  # type: ignore[index]
        options = {"part": parts[at % 3], "articles": ("match", "drop")[at % 2]}
        made.append(Item(id=f"text/{row['id']}", gold=gold, verifier="exact", options=options))
    return made


def verified(plants: list[Plant]) -> list[Verdict]:
    return [verify(one.check.kind, one.check.gold, one.check.answer, **one.check.options) for one in plants]


def test_on_real_golds_no_planted_wrong_answer_passes_and_few_right_ones_fail(shared: Path) -> None:
    plants = plant(items(shared), per_kind=300, seed=3)
    told = {one.kind: one for one in planted_rates(plants, verified(plants))}
    assert set(told) == {"choice", "exact", "math"}
    for kind, one in told.items():
        assert one.errors == one.unscored == 0, kind
        assert one.false_positive.count == 0, (kind, one.missed)
        assert one.false_positive.total >= 250
        assert one.false_negative.total == 300
        assert one.false_negative.count <= 3, (kind, one.missed)


def test_what_is_planted_depends_on_seed_and_ids_and_not_on_the_order(shared: Path) -> None:
    some = items(shared)[:2_000]
    first = plant(some, per_kind=20, seed=1)
    assert plant(reversed(some), per_kind=20, seed=1) == first
    assert plant(some, per_kind=20, seed=2) != first
    assert len({one.item for one in first if one.right}) == len([one for one in first if one.right])


def scripted(right_passes: bool, wrong_passes: bool) -> Callable[[Plant], Verdict]:
    def judged(one: Plant) -> Verdict:
        passes = right_passes if one.right else wrong_passes
        return Verdict(outcome=Outcome.RIGHT if passes else Outcome.WRONG)

    return judged


@pytest.mark.parametrize(("right_passes", "wrong_passes"), [(True, True), (True, False), (False, True)])
def test_a_verifier_that_errs_is_found_out(right_passes: bool, wrong_passes: bool) -> None:
    plants = plant([Item(id=str(at), gold="B", verifier="choice", options={"count": 4}) for at in range(50)])
    rates = planted_rates(plants, [scripted(right_passes, wrong_passes)(one) for one in plants])[0]
    assert rates.false_positive.share == float(wrong_passes)
    assert rates.false_negative.share == float(not right_passes)
    assert sum(rates.missed.values()) == 50 * (wrong_passes + (not right_passes))


def test_an_error_is_in_neither_rate_and_is_counted() -> None:
    plants = plant([Item(id=str(at), gold="7", verifier="math") for at in range(10)])
    verdicts = [Verdict(outcome=Outcome.ERROR if one.right else Outcome.UNSCORED) for one in plants]
    rates = planted_rates(plants, verdicts)[0]
    assert (rates.errors, rates.unscored) == (10, 10)
    assert (rates.false_positive.total, rates.false_negative.total) == (0, 0)
    assert (rates.false_negative.share, rates.false_negative.low, rates.false_negative.high) == (None, 0.0, 1.0)


def test_kinds_whose_golds_are_no_answers_are_not_planted() -> None:
    assert plantable("math")
    assert not plantable("constraints")
    assert plant([Item(id="1", gold=[{"id": "punctuation:no_comma"}], verifier="constraints")]) == []
    assert plant([Item(id="1", gold=None, verifier="math")]) == []


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 200, 0.0, 0.0188), (200, 200, 0.9812, 1.0), (5, 10, 0.2366, 0.7634), (1, 10, 0.0179, 0.4042)],
)
def test_the_interval_is_wilsons(count: int, total: int, low: float, high: float) -> None:
    found = rate(count, total)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@given(st.fractions(min_value=-10_000, max_value=10_000, max_denominator=400))
def test_every_spelling_of_a_value_has_that_value(value: Fraction) -> None:
    for spelling in spellings(value):
        assert number(spelling.removesuffix(".0")) == value


@given(st.text(), st.sampled_from(sorted(PLANTERS)))
def test_any_gold_gives_answers_or_none(gold: str, kind: str) -> None:
    plant([Item(id="1", gold=gold, verifier=kind)])


@given(st.text(max_size=12), st.sampled_from(["edges", "drop", "match"]), st.sampled_from(["ignore", "match"]))
def test_texts_planted_for_exact_are_judged_as_they_were_made(gold: str, punctuation: str, case: str) -> None:
    options = {"punctuation": punctuation, "case": case}
    if verify("exact", gold, gold, **options).outcome is Outcome.ERROR:
        return
    plants = plant([Item(id="1", gold=gold, verifier="exact", options=options)])
    assert all(
        (verdict.outcome is Outcome.RIGHT) == one.right for one, verdict in zip(plants, verified(plants), strict=True)
    )
