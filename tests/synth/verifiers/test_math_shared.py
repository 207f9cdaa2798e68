"""Golden counts on published pairs, and agreement with math-verify on them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from synth.verdicts import Outcome
from synth.verifiers import verify

# A row whose label is another grader's fault or choice, by (gold, answer): ours is the other verdict.
DISPUTED = {
    ("10{,}000", "10000"): "Qwen's grader does not read {,}; the label is its score",
    (r"$x \in [-2,7]$", "$-2 \\\\le x \\\\le 7$"): "labelled false only under math-verify's option that parts the two",
}


def rows(shared: Path, name: str) -> list[dict[str, Any]]:
    with (shared / "math_answers" / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def options(row: dict[str, Any]) -> dict[str, Any]:
    """math-verify's tests compare some rows in few digits."""
    return {"rounding": "digits_given"} if row.get("precision", 6) < 5 else {}


def is_disputed(row: dict[str, Any]) -> bool:
    return (row["gold"], row["answer"]) in DISPUTED and not row["verdict"]


@pytest.mark.parametrize(
    ("name", "right", "wrong", "disputed"),
    [("math_verify_tests", 132, 24, 1), ("qwen_math_outputs", 56, 16, 1), ("derived_variants", 1910, 1241, 0)],
)
def test_every_row_has_its_verdict(shared: Path, name: str, right: int, wrong: int, disputed: int) -> None:
    counts: Counter[str] = Counter()
    for row in rows(shared, name):
        if is_disputed(row):
            counts["disputed"] += 1
            continue
        verdict = verify("math", row["gold"], row["answer"], **options(row))
        assert verdict.outcome == ("right" if row["verdict"] else "wrong"), (row, verdict)
        counts[verdict.outcome] += 1
    assert counts == Counter(right=right, wrong=wrong, disputed=disputed)


def test_plain_numbers_are_decided_without_a_grammar(shared: Path) -> None:
    reasons = Counter(
        verify("math", row["gold"], row["answer"]).reason.split(";")[0] for row in rows(shared, "derived_variants")
    )
    assert reasons["plain_number"] + reasons["as_written"] > 0.9 * reasons.total()


def test_where_math_verify_says_otherwise_is_told_and_ours_stands(shared: Path) -> None:
    """Every tenth row of those that both read: the two agree but for few, and each of these is known by its reason."""
    told = Counter[str]()
    for row in rows(shared, "math_verify_tests")[::3] + rows(shared, "derived_variants")[::60]:
        if is_disputed(row):
            continue
        verdict = verify("math", row["gold"], row["answer"], second_opinion="always", **options(row))
        assert verdict.outcome == ("right" if row["verdict"] else "wrong")
        told["disagrees" if "disagrees" in verdict.reason else "agrees"] += 1
    assert told["disagrees"] <= 0.05 * told["agrees"]


def test_a_disagreement_is_told_in_the_reason_whichever_is_right() -> None:
    verdict = verify("math", "204_5", "204", second_opinion="always")
    assert (verdict.outcome, verdict.reason) == (Outcome.WRONG, "value; math_verify disagrees")
