"""Set-up compiles every kernel that a plan of mapped shards will call."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.train.feed.made import make_tokens

SCRIPT = """
import sys
from train.feed.compiled import compile_plan
compile_plan()
from text import kernel
from train.feed import best_fit, packing, permutation, schedule, stream
kernels = [made for module in (best_fit, packing, permutation, schedule, stream)
           for made in vars(module).values() if hasattr(made, "signatures")]
before = [len(made.signatures) for made in kernels]
from train.feed.plan import Plan
from train.feed.token_shards import TokenShards
shards = TokenShards.open(sys.argv[1])
for packing in ("concat", "best_fit"):
    plan = Plan.new(shards, sequence_tokens=8, batch_sequences=4, seed=1, packing=packing, max_epochs=3, held_out=0.1)
    plan.batch(1), plan.account(0, 2), plan.positions(0, 0, 9, until_step=2)
    plan.change(1, sequence_tokens=5).batch(2)
assert len(kernels) > 10
assert [len(made.signatures) for made in kernels] == before, kernels
"""


def test_nothing_is_compiled_after_set_up(tmp_path: Path) -> None:
    folder = make_tokens(tmp_path, {"a": [[30, 2, 9]], "b": [[7, 0, 50], [3]]})
    subprocess.run([sys.executable, "-c", SCRIPT, folder], check=True, cwd=Path(__file__).parents[3])
