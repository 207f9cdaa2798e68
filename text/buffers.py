"""Arrow strings as the two arrays that kernels read: UTF-8 bytes and int64 offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Texts: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[str]"


def buffers_of(texts: Texts) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """(data uint8[bytes], offsets int64[n + 1]): text i is data[offsets[i]:offsets[i + 1]]; a null text is empty.

    The bytes are a view of the Arrow buffer, also of a slice; only several chunks, nulls and other string types cost
    a copy. Raises TypeError for what is not text.
    """
    array = _one_array(texts)
    n = len(array)
    _, offset_buffer, data_buffer = array.buffers()
    if n == 0 or offset_buffer is None:
        return np.zeros(0, np.uint8), np.zeros(n + 1, np.int64)
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    raw = np.frombuffer(offset_buffer, dtype=width)[array.offset : array.offset + n + 1]
    first, last = int(raw[0]), int(raw[-1])
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, dtype=np.uint8)[first:last]
    return data, raw.astype(np.int64) - first


def _one_array(texts: Texts) -> pa.Array:
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        return pa.array(texts, pa.large_string())
    array = texts
    kind = pa.types
    if not (kind.is_string(array.type) or kind.is_large_string(array.type)):
        if not (kind.is_string_view(array.type) or kind.is_dictionary(array.type) or kind.is_null(array.type)):
            raise TypeError(f"expected an Arrow array of strings, not of {array.type}")
        array = array.cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        # Joined chunks of `string` may pass the 2 GiB that its int32 offsets can count.
        array = array.chunk(0) if array.num_chunks == 1 else array.cast(pa.large_string()).combine_chunks()
    return pc.fill_null(array, "") if array.null_count else array
