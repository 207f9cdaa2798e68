"""Tables: which reader a table file needs. `messages` rows come from any of them, told from the name and the bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ingest.packing import open_input
from ingest.records import Gatherer, Records
from ingest.units import Piece

PARQUET_MAGIC = b"PAR1"


def read_table(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    """The rows of a piece of a table."""
    kind: str = gatherer.source.format
    if kind == "messages":
        kind = _kind(piece)
    if kind == "parquet":
        from ingest.parquet import read_parquet

        return read_parquet(piece, gatherer)
    if kind == "csv":
        from ingest.csv_rows import read_csv

        return read_csv(piece, gatherer)
    from ingest.jsonl import read_jsonl

    return read_jsonl(piece, gatherer)


def _kind(piece: Piece) -> str:
    with open_input(piece.path) as file:
        if file.read(4) == PARQUET_MAGIC:
            return "parquet"
    return "csv" if ".csv" in piece.name.lower() else "jsonl"
