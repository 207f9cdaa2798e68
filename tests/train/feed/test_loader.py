"""The loader: the same batches for any workers, ranks and start; it ends, and fails, in order."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tests.train.feed.made import make_tokens
from tests.train.feed.made_plan import PlainPlan
from train.feed.batch import Batch
from train.feed.loader import Loader, picklable
from train.feed.spans import Spans
from train.feed.token_shards import TokenShards, TokenShardsError


@pytest.fixture
def shards(tmp_path: Path) -> TokenShards:
    return TokenShards.open(make_tokens(tmp_path / "t", {"a": [[30, 20, 51]]}))


def equal(one: Batch, other: Batch) -> bool:
    names = ("tokens", "documents", "positions", "loss", "domains")
    numbers = (one.step, one.first_sequence) == (other.step, other.first_sequence)
    return numbers and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def all_equal(one: list[Batch], other: list[Batch]) -> bool:
    return len(one) == len(other) and all(equal(*pair) for pair in zip(one, other, strict=True))


def no_processes() -> bool:
    for _ in range(100):
        gc.collect()
        if not multiprocessing.active_children():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.filterwarnings("ignore:This DataLoader will create")  # it minds workers beyond the machine's cores
@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (2, 2), (5, 1)])
def test_any_workers_give_the_same_batches_in_order(shards: TokenShards, workers: int, prefetch: int) -> None:
    plan = PlainPlan(shards, steps=9)
    wanted = list(Loader(plan, shards))
    loader = Loader(plan, shards, workers=workers, prefetch=prefetch, start_step=2)
    assert [batch.step for batch in wanted] == list(range(9))
    assert all_equal(list(loader), wanted[2:])
    assert len(loader) == 7
    assert no_processes()


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_processes_that_inherit_nothing_give_the_same(
    shards: TokenShards, start_method: Literal["spawn", "forkserver"]
) -> None:
    plan = PlainPlan(shards, steps=5)
    assert all_equal(list(Loader(plan, shards, workers=1, start_method=start_method)), list(Loader(plan, shards)))


def test_ranks_together_are_the_global_batch(shards: TokenShards) -> None:
    plan = PlainPlan(shards, batch=7, steps=4)
    for world_size in (1, 2, 3, 7, 9):
        ranks = [Loader(plan, shards, rank=rank, world_size=world_size) for rank in range(world_size)]
        for step, batches in enumerate(zip(*ranks, strict=True)):
            whole = Loader(plan, shards).batch(step)
            assert np.array_equal(np.concatenate([batch.tokens for batch in batches]), whole.tokens)
            assert [batch.rows for batch in batches if batch.rows] != []


def test_a_plan_without_end_is_left_at_any_step_and_its_processes_end(shards: TokenShards) -> None:
    for workers in (0, 2):
        loader = Loader(PlainPlan(shards), shards, workers=workers, start_step=1000)
        with pytest.raises(TypeError, match="no length; set stop_step"):
            len(loader)
        seen = []
        for batch in loader:
            seen.append(batch.step)
            if len(seen) == 3:
                break
        assert seen == [1000, 1001, 1002]
        assert no_processes()


def test_nothing_is_left_of_a_last_iteration(shards: TokenShards) -> None:
    loader = Loader(PlainPlan(shards, steps=3), shards)
    assert all_equal(list(loader), list(loader))
    assert list(Loader(PlainPlan(shards, steps=3), shards, start_step=3, workers=2)) == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"stop_step": 4}, "stop_step: 4, but the plan has 3 steps"),
        ({"start_step": 4}, "start_step: 4; it would be 0 to 3"),
        ({"start_step": -1}, "start_step: -1"),
        ({"rank": 2, "world_size": 2}, "rank: 2 of 2; it would be 0 to 1"),
        ({"workers": -1}, "workers: -1"),
        ({"prefetch": 0}, "prefetch: 0"),
    ],
)
def test_steps_and_ranks_that_cannot_be_are_refused(shards: TokenShards, settings: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Loader(PlainPlan(shards, steps=3), shards, **settings)  # type: ignore[arg-type]


class BrokenPlan(PlainPlan):
    def batch(self, step: int, rank: int = 0, world_size: int = 1) -> Spans:
        if step == 3:
            raise TokenShardsError("data/part-00001.bin: torn; copy it again")
        if step == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().batch(step, rank, world_size)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_in_a_worker_reaches_the_caller_as_it_was_after_the_steps_before_it(
    shards: TokenShards, workers: int
) -> None:
    batches = iter(Loader(BrokenPlan(shards), shards, workers=workers))
    assert [next(batches).step for _ in range(3)] == [0, 1, 2]
    with pytest.raises(TokenShardsError) as caught:
        next(batches)
    assert str(caught.value) == "data/part-00001.bin: torn; copy it again"
    del caught
    assert no_processes()


def test_a_worker_that_is_killed_is_an_error_and_no_hang(shards: TokenShards) -> None:
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(Loader(BrokenPlan(shards), shards, workers=1, start_step=4))
    assert no_processes()


def test_an_error_that_cannot_cross_is_told_in_words() -> None:
    class Local(Exception):
        pass

    assert type(picklable(TokenShardsError("x"))) is TokenShardsError
    assert str(picklable(Local("what happened"))) == "Local: what happened"


def test_workers_leave_the_random_state_of_torch_alone(shards: TokenShards) -> None:
    import torch

    before = torch.get_rng_state()
    list(Loader(PlainPlan(shards, steps=2), shards, workers=1))
    assert torch.equal(before, torch.get_rng_state())


def test_its_dataset_serves_anyones_dataloader(shards: TokenShards) -> None:
    from torch.utils import data

    loader = Loader(PlainPlan(shards, steps=5), shards)
    made = data.DataLoader(loader.dataset(), batch_size=None, num_workers=2, collate_fn=_same)
    assert all_equal(list(made), list(loader))
    assert no_processes()


def _same(batch: Batch) -> Batch:
    return batch


def test_it_pickles_small(shards: TokenShards) -> None:
    loader = Loader(PlainPlan(shards, steps=5), shards)
    list(loader)
    assert len(pickle.dumps(loader)) < 2000
    assert all_equal(list(pickle.loads(pickle.dumps(loader))), list(loader))


INTERRUPTED = """
import sys
sys.path[:0] = {path!r}
from tests.train.feed.made_plan import PlainPlan
from train.feed.loader import Loader
from train.feed.token_shards import TokenShards
shards = TokenShards.open({folder!r})
try:
    for batch in Loader(PlainPlan(shards), shards, workers=2):
        if batch.step == 5:
            print("going", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_ends_all_processes(shards: TokenShards) -> None:
    told = INTERRUPTED.format(path=sys.path, folder=shards.folders[0])
    process = subprocess.Popen([sys.executable, "-c", told], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "going\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "interrupted\n"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_no_worker_means_no_torch(shards: TokenShards) -> None:
    told = INTERRUPTED.format(path=sys.path, folder=shards.folders[0]).replace("workers=2", "stop_step=2")
    told += "assert 'torch' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", told], check=True, timeout=60)
