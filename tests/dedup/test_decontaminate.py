"""The step over benchmark files: what it reads, drops and tells."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from dedup import Decontaminate
from dedup.benchmarks import BenchmarkError, benchmark_files, item_of, read_items
from shards.step import Step
from text import attach, tokenize

PROMPT = "Natalia sold clips to forty eight of her friends in April and then she sold half as many in May"


def batch(*texts: str) -> pa.RecordBatch:
    return pa.record_batch(
        {"id": pa.array([str(n) for n in range(len(texts))]), "text": pa.array(texts, pa.large_string())}
    )


@pytest.fixture
def step(tmp_path: Path) -> Decontaminate:
    with gzip.open(tmp_path / "clips.jsonl.gz", "wt") as out:
        out.write(json.dumps({"id": "n1", "question": PROMPT, "answer": 72}) + "\n\n")
        out.write(json.dumps({"id": "n2", "question": f"{PROMPT}, and June", "answer": 72}) + "\n")
    return Decontaminate(benchmarks=(str(tmp_path / "*.jsonl.gz"),))


def test_a_document_that_holds_an_item_goes_with_its_evidence(step: Decontaminate) -> None:
    assert isinstance(step, Step)
    out = step(batch("clean", f"So: {PROMPT}.", ""))
    assert out.kept_rows.tolist() == [0, 2]
    (drop,) = out.drops.to_pylist()
    end = 4 + len(PROMPT)
    assert drop == {
        "row": 1,
        "rule": "contaminated",
        "rules": ["contaminated"],
        "value": 1.0,
        "threshold": pytest.approx(1 - 4 / 34 * 0.4),
        "evidence": f"clips/n1 at 4:{end}",
    }
    assert out.signals is not None
    assert out.signals.column("contamination_score").to_pylist() == [0.0, 1.0, 0.0]
    assert out.signals.column("contamination_item").to_pylist() == [None, "clips/n1", None]


def test_more_items_are_counted(step: Decontaminate) -> None:
    (drop,) = step(batch(f"{PROMPT} and June")).drops.to_pylist()
    assert drop["evidence"].endswith(" +1")


def test_tokens_that_an_earlier_step_left_are_used(step: Decontaminate) -> None:
    rows = batch("clean", PROMPT)
    assert step(attach(rows, tokenize(rows.column("text")))).kept_rows.tolist() == [0]


def test_an_empty_batch_and_a_clean_one(step: Decontaminate) -> None:
    assert step(batch()).kept.num_rows == 0
    assert step(batch("a", "b")).drops.num_rows == 0


def test_the_step_travels_without_its_index(step: Decontaminate) -> None:
    step(batch(PROMPT))
    assert len(pickle.dumps(step)) < 2000
    assert pickle.loads(pickle.dumps(step)) == step


def test_a_pattern_without_files_and_missing_settings_are_told(tmp_path: Path) -> None:
    pattern = str(tmp_path / "*.jsonl")
    with pytest.raises(BenchmarkError, match="no benchmark file matches"):
        Decontaminate(benchmarks=(pattern,)).files()
    with pytest.raises(ValidationError):
        Decontaminate(benchmarks=())
    with pytest.raises(ValidationError):
        Decontaminate()  # type: ignore[call-arg]


def test_json_lines_and_parquet_give_the_same_items(tmp_path: Path) -> None:
    rows = [
        {"bench": "b", "id": str(n), "prompt": f"prompt {n}", "answer": "x", "choices": ["x", "y"]} for n in range(3)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    with pa.CompressedOutputStream(str(tmp_path / "c.jsonl.zst"), "zstd") as out:
        out.write(lines)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    files = benchmark_files((str(tmp_path / "*"), str(tmp_path / "a.jsonl")))
    assert [Path(file).name for file in files] == ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.parquet"]
    first, *others = (list(read_items((file,))) for file in files)
    assert len(first) == 3
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("line", "words"),
    [("{", "2: not JSON"), ("[1]", "2: not a JSON object"), ('{"prompt": 3}', "2: x row 1: no prompt")],
)
def test_a_bad_line_is_named(line: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"prompt": "fine"}\n' + line + "\n")
    with pytest.raises(BenchmarkError, match=words):
        list(read_items((str(tmp_path / "x.jsonl"),)))


@pytest.mark.parametrize(
    ("row", "answers", "index"),
    [
        ({"answer": 72}, ("72",), ""),
        ({"target": ["a", "b"]}, ("a", "b"), ""),
        ({}, (), ""),
        ({"answer": "1", "choices": ["x", "y"]}, ("x", "y"), "1"),
        ({"answer": "B", "options": ["A)x", "B) y"]}, ("x", "y"), ""),
        ({"answer": "yes", "choices": ["x", "yes"]}, ("x", "yes", "yes"), ""),
        ({"answer": "A", "choices": {"text": ["x", "y"], "label": ["A", "B"]}}, ("x", "y"), ""),
        ({"answer": "A", "choices": [{"text": "x"}, {"text": "y"}]}, ("x", "y"), ""),
        ({"answer": "A", "options": {"A": "x", "B": "y"}}, ("x", "y"), ""),
    ],
)
def test_the_answers_looked_for(row: dict[str, object], answers: tuple[str, ...], index: str) -> None:
    item = item_of({"prompt": "p", **row}, bench="b", number=4)
    assert (item.answers, item.index, item.bench, item.id) == (answers, index, "b", "4")
