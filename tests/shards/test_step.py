from __future__ import annotations

import numpy as np
import pyarrow as pa

from shards.step import Check, judge, with_column


def batch(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": [str(n) for n in range(rows)], "text": ["x"] * rows})


def test_the_first_failing_rule_names_the_drop_and_all_are_listed() -> None:
    value = np.array([1.0, 2.0, 3.0])
    judged = judge(
        batch(3),
        [
            Check(rule="short", failed=value < 2, value=value, threshold=2.0),
            Check(rule="odd", failed=value != 2, evidence=["a", None, "c"]),
        ],
    )
    assert judged.kept.column("id").to_pylist() == ["1"]
    assert judged.kept_rows.tolist() == [1]
    assert judged.drops.to_pylist() == [
        {"row": 0, "rule": "short", "rules": ["short", "odd"], "value": 1.0, "threshold": 2.0, "evidence": None},
        {"row": 2, "rule": "odd", "rules": ["odd"], "value": None, "threshold": None, "evidence": "c"},
    ]


def test_a_failed_row_is_neither_kept_nor_dropped() -> None:
    judged = judge(
        batch(3), [Check(rule="all", failed=np.array([True, True, False]))], failures={0: ("ValueError", "no")}
    )
    assert judged.kept_rows.tolist() == [2]
    assert judged.drops.column("row").to_pylist() == [1]
    assert judged.failures.to_pylist() == [{"row": 0, "error": "ValueError", "message": "no"}]


def test_no_checks_keep_everything_and_an_empty_batch_is_judged() -> None:
    assert judge(batch(2), []).kept.num_rows == 2
    assert judge(batch(0), [Check(rule="x", failed=np.zeros(0, np.bool_))]).kept.num_rows == 0


def test_a_new_text_drops_what_was_measured_on_the_old_one() -> None:
    measured = with_column(batch(2), "_words", pa.array([1, 2]))
    rewritten = with_column(measured, "text", pa.array(["a", "b"]))
    assert rewritten.schema.names == ["id", "text"]
    assert with_column(measured, "language", pa.array(["x", "y"])).schema.names == ["id", "text", "_words", "language"]
