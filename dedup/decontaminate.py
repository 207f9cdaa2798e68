"""The step that drops documents which hold items of benchmarks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from dedup.benchmarks import benchmark_files, read_items
from dedup.rules import Rules
from shards.step import Check, Judged, judge

if TYPE_CHECKING:
    from dedup.contamination import ContaminationIndex


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Decontaminate(Rules):
    """Drop documents that hold an item of a benchmark; `Rules` says when one counts as found.

    benchmarks: patterns of JSON lines (plain, gz, zst) or Parquet files with a prompt (or question, problem) a row,
        and where they have them answer, choices, bench, id. Local or any fsspec URL.
    The evidence of a drop names the item that fits best and where it stands, in code points: "gsm8k_test/12 at
    130:452", with "+2" where two more were found.
    Signals: contamination_score, the share of that item found (0 where none was), and contamination_item.
    """

    benchmarks: tuple[str, ...] = Field(min_length=1)

    name: ClassVar[str] = "decontaminate"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"text"})
    adds: ClassVar[pa.Schema] = pa.schema([])
    libraries: ClassVar[tuple[str, ...]] = ()

    def files(self) -> tuple[str, ...]:
        """The benchmark files. Raises BenchmarkError for a pattern that names none."""
        return benchmark_files(self.benchmarks)

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        from text import tokens_of

        rules = Rules(**{name: getattr(self, name) for name in Rules.__dataclass_fields__})
        found = _index(self.files(), rules).check_tokens(tokens_of(batch))
        rows, first, counts = np.unique(found.column("row").to_numpy(), return_index=True, return_counts=True)
        score, threshold = np.zeros(batch.num_rows), np.full(batch.num_rows, np.nan)
        evidence: list[str | None] = [None] * batch.num_rows
        names: list[str | None] = [None] * batch.num_rows
        for row, best, count in zip(rows.tolist(), found.take(first).to_pylist(), counts.tolist(), strict=True):
            score[row], threshold[row] = best["score"], best["threshold"]
            names[row] = f"{best['benchmark']}/{best['item']}"
            more = f" +{count - 1}" if count > 1 else ""
            evidence[row] = f"{names[row]} at {best['start']}:{best['end']}{more}"
        check = Check(rule="contaminated", failed=score > 0, value=score, threshold=threshold, evidence=evidence)
        signals = pa.RecordBatch.from_arrays(
            [pa.array(score), pa.array(names, pa.string())], names=["contamination_score", "contamination_item"]
        )
        return judge(batch, [check], signals=signals)


@lru_cache(maxsize=4)
def _index(files: tuple[str, ...], rules: Rules) -> ContaminationIndex:
    """Built once a process, from files whose digests are in the step's fingerprint."""
    from dataclasses import asdict

    from dedup.contamination import ContaminationIndex

    return ContaminationIndex(read_items(files), **asdict(rules))
