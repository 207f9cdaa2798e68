"""Benchmark items: from JSON lines (plain, gz, zst) or Parquet files to prompts and the answers to look for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import fsspec
import pyarrow.parquet as pq

PROMPT = ("prompt", "question", "problem", "input", "text", "query")
ANSWER = ("answer", "target", "label", "canonical_solution", "final_answer", "solution", "output")
CHOICES = ("choices", "options", "endings")
BENCH = ("bench", "benchmark", "dataset")
ID = ("id", "task_id", "question_id", "idx")
"""The names that the field gives to these, in order of preference; matched exactly."""

MAX_ANSWERS = 32
"""So many choices of an item are looked for; benchmarks have four to ten."""

_LETTER = re.compile(r"\(?([A-Za-z])\)?[.):]?")
_LABELLED = re.compile(r"\s*\(?[A-Za-z][).:]\s*(.*)", re.DOTALL)


class BenchmarkError(ValueError):
    """A benchmark file or item that cannot be read; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One item of a benchmark. answers: texts of which one near the prompt confirms a short one; index: the bare
    number of the right choice, as some files give it, or ""."""

    bench: str
    id: str
    prompt: str
    answers: tuple[str, ...]
    index: str = ""


def item_of(row: Mapping[str, Any], *, bench: str, number: int) -> Item:
    """The item in one row; `bench` and `number` stand in for what the row does not say. Raises BenchmarkError."""
    where = f"{bench} row {number}"
    prompt = _first(row, PROMPT)
    if not isinstance(prompt, str):
        raise BenchmarkError(f"{where}: no prompt; one of {', '.join(PROMPT)} must be a string")
    choices = _choices(_first(row, CHOICES))
    answer = _first(row, ANSWER)
    answers, index = _answers(answer, choices)
    name, identity = _first(row, BENCH), _first(row, ID)
    return Item(
        bench=bench if name is None else str(name),
        id=str(number) if identity is None else str(identity),
        prompt=prompt,
        answers=answers,
        index=index,
    )


def read_items(paths: Sequence[str]) -> Iterator[Item]:
    """The items of all files, in order of paths and rows. Raises BenchmarkError, naming the file and row."""
    for path in paths:
        bench = PurePosixPath(path.replace("\\", "/")).name.split(".")[0]
        for number, row in enumerate(_rows(path)):
            if not isinstance(row, dict):
                raise BenchmarkError(f"{path}:{number + 1}: not a JSON object")
            try:
                yield item_of(row, bench=bench, number=number)
            except BenchmarkError as error:
                raise BenchmarkError(f"{path}:{number + 1}: {error}") from None


def benchmark_files(globs: Sequence[str]) -> tuple[str, ...]:
    """The files that the patterns name, sorted, each once. Raises BenchmarkError for a pattern that names none."""
    found: set[str] = set()
    for pattern in globs:
        files, where = fsspec.core.url_to_fs(pattern)
        matches = files.glob(where)
        if not matches:
            raise BenchmarkError(f"no benchmark file matches {pattern!r}")
        found.update(files.unstrip_protocol(name) if "://" in pattern else name for name in matches)
    return tuple(sorted(found))


def read_benchmarks(globs: Sequence[str]) -> Iterator[Item]:
    """The items of all files that the patterns name. Raises BenchmarkError."""
    return read_items(benchmark_files(globs))


def _rows(path: str) -> Iterable[Any]:
    if path.endswith(".parquet"):
        with fsspec.open(path, "rb") as source:
            for batch in pq.ParquetFile(source).iter_batches(batch_size=1024):
                yield from batch.to_pylist()
        return
    with fsspec.open(path, "rb", compression=None if path.endswith(".zst") else "infer") as raw:
        for number, line in enumerate(_zst(raw) if path.endswith(".zst") else raw):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise BenchmarkError(f"{path}:{number + 1}: not JSON ({error})") from None


def _zst(raw: Any) -> Iterable[bytes]:
    import pyarrow as pa

    lines: list[bytes] = pa.CompressedInputStream(raw, "zstd").read().split(b"\n")
    return lines


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _choices(told: Any) -> list[str]:
    """Choices as a list of str, as {"text": [...], "label": [...]}, as a list of {"text": ...}, or as a mapping."""
    if isinstance(told, Mapping):
        told = told["text"] if isinstance(told.get("text"), list) else list(told.values())
    if not isinstance(told, list | tuple):
        return []
    texts = [str(choice.get("text", "")) if isinstance(choice, Mapping) else str(choice) for choice in told]
    return [labelled.group(1) if (labelled := _LABELLED.fullmatch(text)) else text for text in texts][:MAX_ANSWERS]


def _answers(answer: Any, choices: list[str]) -> tuple[tuple[str, ...], str]:
    parts = answer if isinstance(answer, list | tuple) else [] if answer is None else [answer]
    told = [str(part) for part in parts]
    if not choices:
        return tuple(told[:MAX_ANSWERS]), ""
    if len(told) != 1:
        return tuple(choices), ""
    # With choices the answer is a letter, a position or the text itself; of the first two only a number is looked for,
    # right after the prompt: "a" is a word of its own.
    if told[0].strip().isdigit():
        return tuple(choices), told[0].strip()
    return tuple(choices if _LETTER.fullmatch(told[0].strip()) else [*choices, told[0]]), ""
