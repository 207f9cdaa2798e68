"""What both whole-corpus steps share: numbered documents, heads of equal keys, and the verdict tables.

A document's number is shard * 2**32 + row: it says where the row is and is never part of a decision, but the last
resort between rows of one id, which are identical.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dedup.order import Keep, ties, worth
from shards.step import Shuffle, Verdicts
from shards.store import filesystem, join

FIRST_SEEN = pa.timestamp("us", tz="UTC")

ADDS = pa.schema([("copies", pa.int32()), ("first_seen", FIRST_SEEN)])

DOCS = pa.schema(
    [
        ("doc", pa.int64()),
        ("shard", pa.int32()),
        ("row", pa.int64()),
        ("id", pa.string()),
        ("worth", pa.int64()),
        ("tie_a", pa.int64()),
        ("tie_b", pa.int64()),
        ("copies", pa.int64()),
        ("first_seen", FIRST_SEEN),
        ("key_a", pa.int64()),
        ("key_b", pa.int64()),
    ]
)
"""A row a document. Equal (key_a, key_b) means: the same document for this step."""

READS = frozenset({"id", "text", "date", "copies", "first_seen"})

ORDER = "d.worth, d.tie_a, d.tie_b, d.doc"
"""Keep order, in SQL."""

_INT32_MAX = 2**31 - 1


def readable(path: str) -> list[str]:
    """Those columns of a shard that a whole-corpus step reads."""
    files, where = filesystem(path)
    with files.open(where, "rb") as source:
        return [name for name in pq.read_schema(source).names if name in READS]


def numbered(
    batch: pa.RecordBatch,
    shard: int,
    first_row: int,
    *,
    keep: Keep,
    characters: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
) -> list[pa.Array]:
    """The columns of DOCS for rows first_row, first_row + 1, ... of a shard. keys: int64[n, 2]."""
    rows = np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
    tie = ties(batch.column("id"))
    ids, seen, names = batch.column("id"), _first_seen(batch), batch.schema.names
    copies = batch.column("copies") if "copies" in names else pa.nulls(batch.num_rows, pa.int64())
    return [
        pa.array((np.int64(shard) << 32) + rows),
        pa.array(np.full(len(rows), shard, np.int32)),
        pa.array(rows),
        ids.cast(pa.string()),
        pa.array(worth(keep, characters, seen)),
        pa.array(np.ascontiguousarray(tie[:, 0])),
        pa.array(np.ascontiguousarray(tie[:, 1])),
        pc.fill_null(copies.cast(pa.int64()), 1),
        seen,
        pa.array(np.ascontiguousarray(keys[:, 0])),
        pa.array(np.ascontiguousarray(keys[:, 1])),
    ]


def _first_seen(batch: pa.RecordBatch) -> pa.Array:
    dates = [batch.column(name) for name in ("first_seen", "date") if name in batch.schema.names]
    if not dates:
        return pa.nulls(batch.num_rows, FIRST_SEEN)
    # Arrow has no minimum of timestamps.
    return pc.min_element_wise(*(date.cast(FIRST_SEEN).cast(pa.int64()) for date in dates)).cast(FIRST_SEEN)


def twins(shuffle: Shuffle, docs: str, work: str, where: str = "TRUE") -> str:
    """Table(doc, head): the documents whose key an earlier one in keep order has, with the first of them."""
    return shuffle.query(
        f"""SELECT t.doc, t.head FROM (
                SELECT d.doc, FIRST_VALUE(d.doc) OVER (
                    PARTITION BY d.key_a, d.key_b ORDER BY {ORDER}) AS head
                FROM docs AS d WHERE {where}) AS t
            WHERE t.doc <> t.head""",
        join(work, "twins"),
        docs=docs,
    )


def verdicts(shuffle: Shuffle, docs: str, gone: str, work: str, *, rule: str, threshold: float) -> Verdicts:
    """The two verdict tables from `gone`: doc, kept, similarity."""
    removed = shuffle.query(
        f"""SELECT d.shard, d.row, '{rule}' AS rule, k.id AS kept_id, g.similarity,
                CAST({threshold!r} AS DOUBLE) AS threshold
            FROM gone AS g JOIN docs AS d ON d.doc = g.doc JOIN docs AS k ON k.doc = g.kept
            ORDER BY d.shard, d.row""",
        join(work, "removed"),
        gone=gone,
        docs=docs,
    )
    survivors = shuffle.query(
        f"""SELECT k.shard, k.row, CAST(LEAST(s.copies, {_INT32_MAX}) AS INT) AS copies, s.first_seen
            FROM (SELECT m.kept, SUM(d.copies) AS copies, MIN(d.first_seen) AS first_seen
                  FROM (SELECT g.kept, g.doc FROM gone AS g
                        UNION ALL SELECT DISTINCT g.kept, g.kept AS doc FROM gone AS g) AS m
                  JOIN docs AS d ON d.doc = m.doc GROUP BY m.kept) AS s
            JOIN docs AS k ON k.doc = s.kept
            ORDER BY k.shard, k.row""",
        join(work, "survivors"),
        gone=gone,
        docs=docs,
    )
    return Verdicts(removed=removed, survivors=survivors)
