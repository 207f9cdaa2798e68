"""The ledger: a line a step, flushed; attempts that ranks agree on; nothing overwritten."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest

from tests.train.feed.made import make_tokens
from tests.train.feed.made_plan import PlainPlan
from train.feed import ledger as ledger_module
from train.feed.ledger import Ledger, LedgerError, attempts, plan_digest
from train.feed.loader import Loader
from train.feed.token_shards import TokenShards


@pytest.fixture
def loader(tmp_path: Path) -> Loader:
    shards = TokenShards.open(make_tokens(tmp_path / "t", {"a": [[30, 20, 51]]}))
    return Loader(PlainPlan(shards), shards)


def plan_of(loader: Loader) -> PlainPlan:
    return loader._rank.plan  # type: ignore[return-value]


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_line_is_on_disk_when_told(loader: Loader, tmp_path: Path) -> None:
    folder, plan = tmp_path / "ledger", plan_of(loader)
    ledger = Ledger.open(str(folder), rank=0, world_size=1, plan=plan, start_step=3)
    path = folder / "attempt-00001-rank-00000.jsonl"
    header = lines(path)[0]
    assert header["plan"] == plan.state()
    assert header["plan_digest"] == plan_digest(plan.state())
    assert [header[key] for key in ("attempt", "rank", "world_size", "start_step", "isolate")] == [1, 0, 1, 3, True]
    batch = loader.batch(3)
    ledger.applied(batch, domains={"a": 2.5})
    told = {"step": 3, "first": 12, "rows": 4, "targets": batch.target_count, "digest": batch.digest()}
    assert lines(path)[-1] == told | {"domains": {"a": 2.5}}
    ledger.skipped(4, "spike")
    ledger.skipped(loader.batch(5), "spike")
    assert [line["step"] for line in lines(path)[-2:]] == [4, 5]
    assert lines(path)[-1]["skipped"] == "spike"
    ledger.checkpoint(6, "checkpoints/step-00000006")
    assert lines(path)[-1] == {"checkpoint": "checkpoints/step-00000006", "step": 6}
    ledger.rolled_back(2, "spike")
    assert lines(path)[-1] == {"resume": 2, "reason": "spike"}
    ledger.close()
    ledger.close()
    assert lines(path)[-1] == {"closed": 2}
    with pytest.raises(LedgerError, match="closed; open a new attempt"):
        ledger.applied(batch)


def test_only_rank_0_tells_the_whole_plan(loader: Loader, tmp_path: Path) -> None:
    with Ledger.open(str(tmp_path), rank=1, world_size=2, plan=plan_of(loader), start_step=0, attempt=1):
        header = lines(tmp_path / "attempt-00001-rank-00001.jsonl")[0]
    assert "plan" not in header
    assert header["plan_digest"] == plan_digest(plan_of(loader).state())


def test_attempts_count_up_and_none_is_written_twice(loader: Loader, tmp_path: Path) -> None:
    plan = plan_of(loader)
    for expected in (1, 2, 3):
        Ledger.open(str(tmp_path), rank=0, world_size=1, plan=plan, start_step=0).close()
        assert attempts(str(tmp_path)) == list(range(1, expected + 1))
    with pytest.raises(LedgerError, match="attempt-00002-rank-00000: recorded already"):
        Ledger.open(str(tmp_path), rank=0, world_size=1, plan=plan, start_step=0, attempt=2)
    with pytest.raises(LedgerError, match="2 ranks must record the same attempt; give `attempt`"):
        Ledger.open(str(tmp_path), rank=0, world_size=2, plan=plan, start_step=0)


def test_an_attempt_that_failed_has_no_closing_line(loader: Loader, tmp_path: Path) -> None:
    def train() -> None:
        with Ledger.open(str(tmp_path), rank=0, world_size=1, plan=plan_of(loader), start_step=0) as ledger:
            ledger.applied(loader.batch(0))
            raise RuntimeError("loss is nan")

    with pytest.raises(RuntimeError, match="nan"):
        train()
    assert "closed" not in lines(tmp_path / "attempt-00001-rank-00000.jsonl")[-1]


def test_on_an_object_store_lines_come_in_parts_and_at_each_checkpoint(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "REMOTE_LINES", 4)
    files = fsspec.filesystem("memory")
    ledger = Ledger.open("memory://remote-ledger", rank=0, world_size=1, plan=plan_of(loader), start_step=0)
    for step in range(5):
        ledger.applied(loader.batch(step))
    ledger.checkpoint(5, "c")
    ledger.applied(loader.batch(5))
    parts = sorted(files.ls("/remote-ledger", detail=False))
    assert [files.cat(part).count(b"\n") for part in parts] == [4, 3]
    ledger.close()
    assert [part.rsplit("/", 1)[-1] for part in sorted(files.ls("/remote-ledger", detail=False))] == [
        f"attempt-00001-rank-00000-part-{part:05d}.jsonl" for part in range(3)
    ]
    with pytest.raises(LedgerError, match="recorded already"):
        Ledger.open("memory://remote-ledger", rank=0, world_size=1, plan=plan_of(loader), start_step=0, attempt=1)


def test_a_loader_records_a_step_when_the_next_is_asked_for(loader: Loader, tmp_path: Path) -> None:
    path = tmp_path / "ledger" / "attempt-00001-rank-00000.jsonl"
    recorded = Loader(plan_of(loader), loader._rank.shards, stop_step=3, ledger=str(tmp_path / "ledger"))
    batches = iter(recorded)
    assert not path.exists()
    next(batches)
    assert len(lines(path)) == 1
    next(batches)
    assert [line["step"] for line in lines(path)[1:]] == [0]
    assert len(list(batches)) == 1
    assert lines(path)[-1] == {"closed": 3}


KILLED = """
import sys
sys.path[:0] = {path!r}
from tests.train.feed.made_plan import PlainPlan
from train.feed.loader import Loader
from train.feed.token_shards import TokenShards
shards = TokenShards.open({folder!r})
for batch in Loader(PlainPlan(shards), shards, ledger={ledger!r}):
    if batch.step == 5:
        print("going", flush=True)
        sys.stdin.read()
"""


def test_a_kill_loses_no_step(loader: Loader, tmp_path: Path) -> None:
    code = KILLED.format(path=sys.path, folder=loader._rank.shards.folders[0], ledger=str(tmp_path / "ledger"))
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "going\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert [line["step"] for line in lines(tmp_path / "ledger" / "attempt-00001-rank-00000.jsonl")[1:]] == list(
        range(5)
    )


def _agree(rank: int, folder: str, store: str, given: str) -> None:
    from torch import distributed

    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    plan = PlainPlan(TokenShards.open(given))
    Ledger.open(folder, rank=rank, world_size=2, plan=plan, start_step=0).close()
    distributed.destroy_process_group()


@pytest.mark.heavy
def test_ranks_agree_on_the_attempt(loader: Loader, tmp_path: Path) -> None:
    import multiprocessing

    folder = tmp_path / "ledger"
    Ledger.open(str(folder), rank=0, world_size=1, plan=plan_of(loader), start_step=0).close()
    context = multiprocessing.get_context("spawn")
    told = (str(folder), str(tmp_path / "store"), loader._rank.shards.folders[0])
    processes = [context.Process(target=_agree, args=(rank, *told)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert sorted(path.name for path in folder.iterdir()) == [
        "attempt-00001-rank-00000.jsonl",
        "attempt-00002-rank-00000.jsonl",
        "attempt-00002-rank-00001.jsonl",
    ]
