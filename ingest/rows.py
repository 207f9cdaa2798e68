"""Rows made one by one to records: the exact way that the table readers fall back to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ingest.records import Gatherer, Records, build_batch, drops_batch


def records_of(rows: Sequence[dict[str, Any]], gatherer: Gatherer) -> Records:
    """Records of rows made by `fields.row_of`, each with its `_bytes`; with what was lost among them."""
    source = gatherer.source
    types = {field.name: field.type for field in source.schema()}
    body = ["messages", "text"] if source.format == "messages" else ["text"]
    names = [*body, "source_id", "url", "date", *source.columns]
    columns = {name: pa.array([row[name] for row in rows], types[name]) for name in names}
    columns["_bytes"] = pa.array([row["_bytes"] for row in rows], pa.int64())
    records = Records(batch=build_batch(source, columns, len(rows)), drops=drops_batch(()), lost=tuple(gatherer.lost))
    gatherer.lost = []
    return records
