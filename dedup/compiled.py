"""Compile time is paid once, at set-up or by the driver, and never by each worker of each run."""

from __future__ import annotations

import pyarrow as pa

from dedup.contamination import ContaminationIndex
from dedup.greedy import EDGE, Greedy
from dedup.near import near_duplicates
from dedup.order import ties
from dedup.tasks import Verify
from text import compile as compile_text


def compile() -> None:
    """Run every kernel once on a few words: builds it, or loads it from numba's cache beside the package."""
    compile_text()
    words = [f"word{number}" for number in range(40)]
    near_duplicates([" ".join(words), " ".join(words[1:])], ids=["a", "b"], verify=0.5)
    ties(pa.array(["0" * 32, "plain"]))
    items = [
        {"prompt": " ".join(words), "answer": "1"},
        {"prompt": "two words", "answer": "1"},
        {"prompt": "f(x) = 12?"},
    ]
    ContaminationIndex(items).check([" ".join(words), "Two words: 1", "f(x) = 12", ""])
    table = pa.table({"a": [0, 0], "b": [-1, 1], "shingles": pa.array([b"\0" * 8] * 2, pa.binary())})
    list(Verify(at_least=0.5)(iter(table.to_batches())))
    # Arrow's buffers are read-only, which is another type to the compiler than the arrays of the plain form.
    edge = {name: pa.array([0], pa.float64() if name == "similarity" else pa.int64()) for name in EDGE}
    list(Greedy()(iter(pa.table(edge).to_batches())))
