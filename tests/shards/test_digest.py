from __future__ import annotations

import struct

import pyarrow as pa
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from shards.digest import digest, row_hashes, row_ids, to_hex

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.none() | st.text(),
            "count": st.none() | st.integers(-(2**31), 2**31 - 1),
            "score": st.none() | st.floats(allow_nan=True),
            "tags": st.none() | st.lists(st.text(max_size=3), max_size=3),
        }
    ),
    min_size=1,
    max_size=8,
)
SCHEMA = pa.schema(
    [("name", pa.large_string()), ("count", pa.int32()), ("score", pa.float64()), ("tags", pa.list_(pa.string()))]
)


def batch_of(rows: list[dict[str, object]], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def test_a_row_is_hashed_as_its_columns_in_name_order_with_null_flags() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"b": pa.array([7], pa.int32()), "a": pa.array(["é"], pa.large_string()), "c": pa.array([None], pa.string())}
    )
    encoded = b"a\x00" + "é".encode() + b"b\x00" + struct.pack("<i", 7) + b"c\x01"
    assert row_hashes(batch) == [xxhash.xxh3_128_intdigest(encoded)]
    assert row_ids(batch).to_pylist() == [f"{xxhash.xxh3_128_intdigest(encoded):032x}"]


@given(ROWS, st.randoms(use_true_random=False))
def test_the_digest_does_not_depend_on_order_or_cut(rows: list[dict[str, object]], random: object) -> None:
    whole = digest([batch_of(rows)])
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    parts = [batch_of([row]) for row in shuffled]
    assert digest(parts) == whole


@given(ROWS)
def test_column_order_string_width_and_transient_columns_do_not_count(rows: list[dict[str, object]]) -> None:
    batch = batch_of(rows)
    other = pa.RecordBatch.from_arrays(
        [batch.column("tags"), batch.column("name").cast(pa.string()), batch.column("score"), batch.column("count"),
         pa.array(range(len(rows)))],
        names=["tags", "name", "score", "count", "_row"],
    )  # fmt: skip
    assert row_hashes(other) == row_hashes(batch)


def test_null_and_empty_and_absent_differ() -> None:
    schema = pa.schema([("name", pa.string())])
    hashes = row_hashes(batch_of([{"name": None}, {"name": ""}], schema))
    assert len(set(hashes)) == 2


def test_every_not_a_number_is_the_same_value() -> None:
    quiet, other = struct.unpack("<dd", struct.pack("<QQ", 0x7FF8000000000000, 0xFFF8000000000123))
    first, second = row_hashes(pa.RecordBatch.from_pydict({"x": [quiet, other]}))
    assert first == second


def test_slices_hash_like_copies() -> None:
    batch = batch_of([{"name": str(n), "count": n, "score": float(n), "tags": [str(n)]} for n in range(10)])
    assert row_hashes(batch.slice(3, 4)) == row_hashes(batch)[3:7]


def test_equal_rows_count_twice() -> None:
    row = batch_of([{"name": "a"}])
    assert digest([row, row]) == 2 * digest([row]) % (1 << 128)
    assert len(to_hex(digest([row]))) == 32
