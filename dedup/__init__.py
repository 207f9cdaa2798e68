"""Documents against documents, and against benchmarks.

signatures(texts)                  MinHash signatures, value for value those of datasketch's scheme affine32
near_duplicates(texts)             which texts would go, for whom, at which similarity
ContaminationIndex(items)          finds benchmark items in texts; .check(texts)
benchmark_files(patterns)          the files that patterns name; read_benchmarks(patterns), their items
Exact, Minhash                     whole-corpus steps
Decontaminate                      the per-document step over benchmark files
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dedup.benchmarks import benchmark_files, read_benchmarks
    from dedup.compiled import compile
    from dedup.contamination import ContaminationIndex
    from dedup.decontaminate import Decontaminate
    from dedup.exact import Exact
    from dedup.minhash import Minhash
    from dedup.near import near_duplicates
    from dedup.sketch import signatures

__all__ = [
    "ContaminationIndex",
    "Decontaminate",
    "Exact",
    "Minhash",
    "benchmark_files",
    "compile",
    "near_duplicates",
    "read_benchmarks",
    "signatures",
]

_HOMES = {
    "ContaminationIndex": "dedup.contamination",
    "Decontaminate": "dedup.decontaminate",
    "Exact": "dedup.exact",
    "Minhash": "dedup.minhash",
    "compile": "dedup.compiled",
    "near_duplicates": "dedup.near",
    "benchmark_files": "dedup.benchmarks",
    "read_benchmarks": "dedup.benchmarks",
    "signatures": "dedup.sketch",
}


def __getattr__(name: str) -> Any:
    # numba takes a second to import, and `gristmill --help` needs none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'dedup' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
