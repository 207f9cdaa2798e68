"""What a stored plan means: states, ledgers and checkpoints of old runs are read by it, so that it may not drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xxhash

from tests.train.feed.made_index import MadeIndex
from train.feed.plan import FORMAT, Plan

# Documents of 0 to 96 tokens, over shards of which one is empty; of ten, of which no row holds two; and a long one.
INDEX = MadeIndex(
    {
        "code": [[(7 * n) % 97 for n in range(60)], [], [(11 * n) % 53 for n in range(40)]],
        "prose": [[10] * 90],
        "tiny": [[3, 150]],
    }
)


def digest(plan: Plan) -> str:
    """Of all spans of the first steps."""
    hashed = xxhash.xxh3_64()
    for step in range(24):
        spans = plan.batch(step)
        columns = (spans.row, spans.slot, spans.domain, spans.shard, spans.document, spans.start, spans.count)
        for column in (*columns, spans.repeats):
            hashed.update(np.ascontiguousarray(column, np.int64).tobytes())
    return hashed.hexdigest()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"packing": "concat"}, "9a82992b1142185f"),
        ({"packing": "best_fit"}, "756b9ff06e58e4fa"),
        ({"packing": "best_fit", "overflow": "crop", "slack": 0.0}, "c8ce69a4c5da50b9"),
        ({"packing": "best_fit", "overflow": "drop", "slack": 0.0}, "e465bd16bd1d8ce6"),
    ],
)
def test_a_state_of_this_format_gives_the_tokens_that_it_always_gave(settings: dict[str, Any], told: str) -> None:
    """Where this fails, runs that were trained by plans of this FORMAT can be neither audited nor gone on with: give
    the format another number, and refuse the old one."""
    plan = Plan.new(
        INDEX,
        weights={"code": 0.5, "prose": 0.3, "tiny": 0.2},
        sequence_tokens=16,
        batch_sequences=5,
        seed=7,
        held_out=0.1,
        block_tokens=64,
        window_sequences=8,
        max_epochs={"tiny": 3},
        **settings,
    )
    plan = plan.change(9, weights={"code": 1, "prose": 1, "tiny": 1}).change(15, sequence_tokens=24, batch_sequences=4)
    assert FORMAT == "gristmill-plan-1"
    assert digest(Plan.of(INDEX, plan.state())) == told
