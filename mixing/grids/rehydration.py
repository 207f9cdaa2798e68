"""Repeats of documents by how many copies deduplication found of them, and by quality, as weights of cells.

Deduplication keeps one document of many; that it was copied says something of its worth, up to a point: what stands on
the web a thousand times is boilerplate. Documents are put in buckets by `copies` (the column of `exact` and `minhash`),
each a cell of a grid (web@copies:2), and a bucket's weight is its tokens times its repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mixing.grids.grid import MARK
from mixing.observations.points import Floats, MixingError

REPEATS: Final[Mapping[int, float]] = {1: 1, 2: 2, 3: 3, 5: 5, 100: 8, 1000: 1}
"""{least copies: times a document is seen}: huggingface/fineweb-2, README ("re-hydration"): 4 copies count as 3, and
1,000 or more as one. Its authors call them promising, not tuned."""


@dataclass(frozen=True, kw_only=True)
class Rehydration:
    """A bucket of documents of one domain. cell: DOMAIN@copies:LEAST. tokens: unique ones, each document's once.

    weight: share of all tokens once each bucket is repeated; the weights of all buckets sum to 1.
    """

    cell: str
    least_copies: int
    documents: int
    tokens: int
    repeats: float
    weight: float


def bucket_of(copies: npt.ArrayLike, repeats: Mapping[int, float] = REPEATS) -> npt.NDArray[np.int64]:
    """[n] least copies of the bucket that each document is in; a document that was found once has 1 copy, as null has.

    Raises MixingError where the buckets do not begin at 1 or a repeat is below 0.
    """
    least = _checked(repeats)
    told = np.maximum(np.asarray(copies, np.int64), 1)
    return least[np.searchsorted(least, told, side="right") - 1]


def count_copies(
    tables: pa.Table | Iterable[pa.Table | pa.RecordBatch],
    *,
    tokens: str = "token_count",
    repeats: Mapping[int, float] = REPEATS,
) -> dict[tuple[str, int], tuple[int, int]]:
    """{(domain, least copies): (documents, tokens)} of rows with columns `domain`, `copies` and tokens.

    tables: one, or batches of any size, as shards.store.read_batches yields them; nothing but the sums is held. Without
    copies (null) a document counts as one of a kind. Raises MixingError where a column is not there or tokens are null.
    """
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for some in (tables,) if isinstance(tables, pa.Table) else tables:
        missing = [name for name in ("domain", "copies", tokens) if name not in some.schema.names]
        if missing:
            raise MixingError(f"copies: no column {missing[0]!r}; needed are domain, copies and {tokens}")
        if some.column(tokens).null_count or some.column("domain").null_count:
            raise MixingError(f"copies: a document without {tokens} or domain; tokenise the corpus first")
        least = bucket_of(pc.fill_null(some.column("copies"), 1).to_numpy(zero_copy_only=False), repeats)
        counts = pa.table(
            {"domain": some.column("domain"), "least": pa.array(least), "tokens": some.column(tokens)}
        ).group_by(["domain", "least"], use_threads=False)
        for row in counts.aggregate([("tokens", "count"), ("tokens", "sum")]).to_pylist():
            key = (str(row["domain"]), int(row["least"]))
            documents, total = found.get(key, (0, 0))
            found[key] = (documents + row["tokens_count"], total + row["tokens_sum"])
    return found


def rehydrate(
    counts: Mapping[tuple[str, int], tuple[int, int]], repeats: Mapping[int, float] = REPEATS
) -> tuple[Rehydration, ...]:
    """The buckets of `count_copies` with weights, by domain and copies. Raises MixingError where no token is seen."""
    _checked(repeats)
    for _, least in counts:
        if least not in repeats:
            raise MixingError(f"repeats: no bucket begins at {least} copies; count with the same repeats")
    cells = sorted(counts)
    weights = upsampled(
        {_name(cell): counts[cell][1] for cell in cells}, {_name(cell): repeats[cell[1]] for cell in cells}
    )
    return tuple(
        Rehydration(
            cell=_name(cell),
            least_copies=cell[1],
            documents=counts[cell][0],
            tokens=counts[cell][1],
            repeats=float(repeats[cell[1]]),
            weight=weights[_name(cell)],
        )
        for cell in cells
    )


def upsampled(tokens: Mapping[str, float], repeats: Mapping[str, float]) -> dict[str, float]:
    """{name: weight} of a mixture in which each domain or cell is seen `repeats` times (1 where it is left out).

    Raises MixingError for an unknown name, tokens or repeats below 0, or a sum of 0.
    """
    unknown = sorted(set(repeats) - set(tokens))
    if unknown:
        raise MixingError(f"repeats: no {unknown[0]!r}; there are {', '.join(tokens)}")
    seen = {name: count * repeats.get(name, 1.0) for name, count in tokens.items()}
    for name, count in seen.items():
        if not 0 <= count < float("inf") or tokens[name] < 0:
            raise MixingError(
                f"repeats: {name} has {tokens[name]} tokens, {repeats.get(name, 1.0)} times; give 0 or more"
            )
    total = sum(seen.values())
    if total <= 0:
        raise MixingError("repeats: no token is seen once; give some domain tokens and repeats above 0")
    return {name: count / total for name, count in seen.items()}


def quality_repeats(shares_kept: Mapping[str, float], *, most: float = 10.0) -> dict[str, float]:
    """{name: repeats} from the share of a bucket's documents that the quality filters kept: 1 at the poorest, `most` at
    the best, straight between.

    A bucket (of copies, or of a source) whose documents pass filters more often is better throughout, and is seen more.
    The form is ours; that filters' rates tell which buckets to repeat is FineWeb2's idea (arXiv:2506.20920).
    Raises MixingError where a share is not from 0 to 1, or most is below 1.
    """
    shares = np.array(list(shares_kept.values()), np.float64)
    if not len(shares) or not ((shares >= 0) & (shares <= 1)).all():
        raise MixingError(f"shares_kept: {dict(shares_kept)}; give each bucket a share from 0 to 1")
    if not 1 <= most < float("inf"):
        raise MixingError(f"most: {most}; give repeats of the best bucket, 1 or more")
    low, width = shares.min(), np.ptp(shares)
    rank = (shares - low) / width if width > 0 else np.zeros(len(shares))
    told: Floats = 1 + (most - 1) * rank
    return dict(zip(shares_kept, told.tolist(), strict=True))


def _name(cell: tuple[str, int]) -> str:
    return f"{cell[0]}{MARK}copies:{cell[1]}"


def _checked(repeats: Mapping[int, float]) -> npt.NDArray[np.int64]:
    least = np.array(sorted(repeats), np.int64)
    if not len(least) or least[0] != 1:
        raise MixingError(f"repeats: begin at {sorted(repeats)[:1]} copies; the first bucket begins at 1")
    bad = [count for count, times in repeats.items() if not 0 <= times < float("inf")]
    if bad:
        raise MixingError(f"repeats: {repeats[bad[0]]} from {bad[0]} copies on; give 0 or more")
    return least
