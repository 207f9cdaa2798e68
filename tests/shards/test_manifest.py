from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.manifest import ConservationError, Tally, buckets, manifest, total


def tally(rows_in: int = 3, **rows: int) -> Tally:
    counted = Counter({"in": rows_in, "kept": 1, "dropped": 1, "quarantined": 1} | rows)
    return Tally(rows=counted, bytes=Counter(counted), digests={"data": 5})


@pytest.mark.parametrize("outcome", ["kept", "dropped", "quarantined"])
@pytest.mark.parametrize("what", ["rows", "bytes"])
def test_a_row_or_byte_without_outcome_is_an_error(outcome: str, what: str) -> None:
    told = tally()
    told.check("step")
    getattr(told, what)[outcome] -= 1
    with pytest.raises(ConservationError, match=f"step: {what} in 3"):
        told.check("step")
    with pytest.raises(ConservationError):
        manifest(step="s", kind="s", settings={}, code={}, fingerprint="f", inputs=[], tally=told)


def test_tallies_add_up_and_survive_json() -> None:
    first, second = tally(), tally()
    first.observe(pa.RecordBatch.from_pydict({"words": [1.0, 3.0]}))
    second.observe(pa.RecordBatch.from_pydict({"words": [1.0, 0.0]}))
    both = total([first, second])
    assert both.rows["in"] == 6
    assert both.digests == {"data": 10}
    assert both.histograms == {"words": {0.0: 1, 1.0: 2, 3.0: 1}}
    assert Tally.from_json(json.loads(json.dumps(both.to_json()))) == both


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.none(), max_size=50))
def test_buckets_of_parts_add_up_to_buckets_of_the_whole(values: list[float | None]) -> None:
    column = pa.array(values, pa.float64())
    half = len(values) // 2
    parts = buckets(column.slice(0, half)) + buckets(column.slice(half))
    assert parts == buckets(column)


@pytest.mark.parametrize(
    ("value", "edge"),
    [(0.0, 0.0), (1.0, 1.0), (1.12, 1.0), (1.125, 1.125), (1.25, 1.25), (100.0, 96.0), (-1.0, -1.0), (-1.12, -1.0)],
)
def test_a_bucket_is_named_by_its_edge_nearer_to_zero(value: float, edge: float) -> None:
    assert buckets(pa.array([value])) == {edge: 1}
