"""What a step of a user's returns is checked where it returns: in its name, in one line, at a small cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.adapters import PythonStep
from jobs.outcome import apply
from jobs.plan import StepPlan
from jobs.returned import WrongReturnError, checked
from shards.schema import DOCUMENT
from shards.step import judge
from tests.jobs.corpus import mill, rows, write_jsonl

SCHEMA = pa.schema([*DOCUMENT, ("stars", pa.int32())])


def batch_of(*texts: str) -> pa.RecordBatch:
    count = len(texts)
    ids = [f"{number:032x}" for number in range(count)]
    columns: dict[str, Any] = {
        "id": ids, "source": ["s"] * count, "domain": ["d"] * count, "text": texts, "stars": [1] * count
    }  # fmt: skip
    return pa.RecordBatch.from_arrays(
        [pa.array(columns.get(field.name, [None] * count), field.type) for field in SCHEMA], schema=SCHEMA
    )


def plan(step: Any, *, domains: tuple[str, ...] | None = None) -> StepPlan:
    schema = SCHEMA
    for field in step.adds:
        schema = schema.append(field)
    return StepPlan(
        name="mine", kind="python", folder="02-mine", step=step, domains=domains, settings={}, code={},
        fingerprint="", schema=schema,
    )  # fmt: skip


def wrong(way: str, **args: Any) -> PythonStep:
    return PythonStep(object="tests.jobs.wrong_steps.Wrong", args={"way": way, **args})


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("batch", "RecordBatch, where a step returns shards.step.Judged"),
        ("null_text", "no text where there was text; drop such a row, or give it an empty text"),
        ("no_text", "kept rows without the column 'text'"),
        ("integer_text", "the column 'text' as int64, where large_string belongs"),
        ("binary_text", "the column 'text' as large_binary, where large_string belongs"),
        ("not_utf8", "kept that are no valid Arrow data (In column 6: Invalid: Invalid UTF8 sequence"),
        ("table", "Table as kept, where a RecordBatch belongs"),
        ("undeclared", "a column 'more' that its `adds` does not declare"),
        ("no_stars", "kept rows without the column 'stars'"),
        ("signal_id", "a signal named 'id', a name that is taken; choose another"),
        ("signal_step", "a signal named 'step', a name that is taken; choose another"),
        ("short_signals", "2 rows of signals for 3 documents"),
        ("few_rows", "3 kept rows and 2 kept_rows"),
        ("float_rows", "kept_rows that are no array of whole numbers"),
        ("list_rows", "kept_rows that are no array of whole numbers"),
        ("twice_rows", "3 outcomes for 3 rows; each row is kept, dropped or failed once"),
        ("far_rows", "3 outcomes for 3 rows; each row is kept, dropped or failed once"),
        ("back_rows", "kept rows that are not in the order of the input"),
        ("other_order", "kept rows whose `id` is not that of their kept_rows"),
        ("no_rule", "drops with nothing in 'rule'"),
        ("odd_drops", "drops without the column 'rule'"),
        ("twin_columns", "two columns 'text' in kept"),
    ],
)
def test_each_wrong_return_is_told_in_the_steps_name(way: str, said: str) -> None:
    with pytest.raises(WrongReturnError) as caught:
        apply(plan(wrong(way)), batch_of("one", "two", "three"), keep_dropped=1.0)
    assert str(caught.value).startswith(f"mine: the step returned {said}")
    assert "\n" not in str(caught.value)


def test_a_column_that_is_declared_must_be_there() -> None:
    with pytest.raises(WrongReturnError, match="without the column 'more', which it adds"):
        apply(plan(wrong("fine", adds=True)), batch_of("one"), keep_dropped=1.0)


@pytest.mark.parametrize("domains", [None, ("d",), ("other",)])
def test_a_kindred_type_becomes_the_declared_one(domains: tuple[str, ...] | None) -> None:
    outcome = apply(plan(wrong("short_text"), domains=domains), batch_of("one", "two"), keep_dropped=1.0)
    assert outcome.kept.schema.field("text").type == pa.large_string()
    assert outcome.kept.column("text").to_pylist() == ["one", "two"]


def test_nothing_is_wrong_with_no_rows() -> None:
    assert apply(plan(wrong("fine")), batch_of(), keep_dropped=1.0).kept.num_rows == 0


def test_the_shard_fails_in_the_steps_name_and_nobody_is_quarantined(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "data" / "a.jsonl", rows(30))
    steps = [{"step": "python", "object": "tests.jobs.wrong_steps.Wrong", "args": {"way": "null_text"}, "name": "mine"}]
    result = mill(tmp_path / "data", tmp_path / "out", steps=steps)
    assert result.exit_code == 3
    (line,) = result.failures
    assert "mine: the step returned no text where there was text" in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("dumb", "error", "said"),
    [(False, "SurrogateError", r"SurrogateError: a \ud800 b"), (True, "DumbError", "its message cannot be told")],
)
def test_words_that_no_file_can_hold_cost_one_row(dumb: bool, error: str, said: str) -> None:
    step = PythonStep(object="tests.jobs.wrong_steps.Raising", args={"dumb": dumb})
    outcome = apply(plan(step), batch_of("one", "poison", "three"), keep_dropped=1.0)
    (row,) = outcome.quarantined.to_pylist()
    assert row["error"] == error
    assert row["message"].startswith(said)
    assert outcome.kept.column("text").to_pylist() == ["one", "three"]


def test_checking_costs_microseconds_a_row() -> None:
    batch = batch_of(*["a text of some words " * 100] * 1024)
    step, judged = plan(wrong("fine")), judge(batch, [])
    best = min(_seconds(step, batch, judged) for _ in range(5))
    assert best < 1024 * 20e-6


def _seconds(step: StepPlan, batch: pa.RecordBatch, judged: Any) -> float:
    started = time.perf_counter()
    checked(step, batch, judged)
    return time.perf_counter() - started
