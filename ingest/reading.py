"""Units to records: which reader reads what. Memory is bounded by the batch and one record."""

from __future__ import annotations

from collections.abc import Iterator

from ingest.records import Gatherer, Records
from ingest.source import TABULAR_FORMATS, WARC_FORMATS
from ingest.units import Piece, Unit

BATCH_ROWS = 1024
BATCH_BYTES = 16 << 20


def read(unit: Unit, *, batch_rows: int = BATCH_ROWS, batch_bytes: int = BATCH_BYTES) -> Iterator[Records]:
    """The unit's rows in batches of at most `batch_rows` rows and about `batch_bytes` of content.

    Never raises for what the bytes hold: damage becomes `Records.lost`, with its place. A file that cannot be opened
    any more is lost as a whole; so is the rest of one that makes its reader fail, whatever the exception.
    """
    gatherer = Gatherer(source=unit.source, batch_rows=batch_rows, batch_bytes=batch_bytes)
    for piece in unit.pieces:
        try:
            yield from _read_piece(piece, gatherer)
        except Exception as error:  # one odd file, and a reader that did not foresee it, must not cost the others
            said = (error.strerror or "") if isinstance(error, OSError) else ""
            message = f"cannot be read: {type(error).__name__} {said}".strip()
            gatherer.lose(f"{piece.path}@{piece.start}-{piece.end}", "unreadable", message, piece.end - piece.start)
    if (last := gatherer.take()) is not None:
        yield last


def _read_piece(piece: Piece, gatherer: Gatherer) -> Iterator[Records]:
    if gatherer.source.format in WARC_FORMATS:
        from ingest.warc import read_warc

        return read_warc(piece, gatherer)
    if gatherer.source.format in TABULAR_FORMATS:
        from ingest.tables import read_table

        return read_table(piece, gatherer)
    from ingest.files import read_file

    return read_file(piece, gatherer)
