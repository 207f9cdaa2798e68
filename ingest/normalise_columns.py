"""The normal form of text columns: whole columns are checked at once, rows are touched only where needed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.normalise import SUSPECT, normalise_text


def normalise(column: pa.Array) -> pa.Array:
    """The normal form of a large_string column; nulls stay null."""
    odd = _odd(column)
    rows = np.flatnonzero(odd)
    if len(rows) == 0:
        return column
    changed = pa.array([normalise_text(text) for text in column.take(pa.array(rows)).to_pylist()], column.type)
    return pc.replace_with_mask(column, pa.array(odd), changed)


def _odd(column: pa.Array) -> npt.NDArray[np.bool_]:
    """bool[n]: rows whose normal form may differ from what they are."""
    odd = pc.or_(pc.match_substring(column, "\r"), pc.match_substring(column, "\0"))
    plain = pc.string_is_ascii(column)
    if not pc.all(plain, skip_nulls=True).as_py():
        wide = pc.if_else(plain, pa.scalar(None, column.type), column)
        odd = pc.or_kleene(odd, pc.fill_null(pc.match_substring_regex(wide, SUSPECT), False))
        odd = pc.or_kleene(odd, pc.fill_null(pc.not_equal(wide, pc.utf8_normalize(wide, "NFC")), False))
    return np.asarray(pc.fill_null(odd, False).to_numpy(zero_copy_only=False), dtype=np.bool_)
