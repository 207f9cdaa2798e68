"""What a ledger says happened: attempts, what they made void, torn lines, checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from train.feed.history import read_history
from train.feed.ledger import FORMAT, LedgerError

Line = dict[str, Any] | str


def applied(step: int, *, first: int = 0, rows: int = 4) -> Line:
    return {"step": step, "first": first, "rows": rows, "targets": 9, "digest": f"{step:016x}"}


def write(
    folder: Path, attempt: int, start: int, lines: list[Line], *, rank: int = 0, world: int = 1, **more: Any
) -> Path:
    header = {
        "format": FORMAT,
        "attempt": attempt,
        "rank": rank,
        "world_size": world,
        "start_step": start,
        "plan_digest": "p",
        "isolate": True,
    }
    path = folder / f"attempt-{attempt:05d}-rank-{rank:05d}.jsonl"
    folder.mkdir(exist_ok=True)
    told = [line if isinstance(line, str) else json.dumps(line) + "\n" for line in [header | more, *lines]]
    path.write_text("".join(told))
    return path


def remains(folder: Path) -> dict[int, list[tuple[int, int]]]:
    steps = read_history(str(folder)).steps
    return {step: [(one.attempt, one.rank) for one in records] for step, records in steps.items()}


def test_a_new_attempt_makes_void_what_earlier_ones_did_from_its_start_on(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, [applied(0), applied(1), applied(2)])
    write(tmp_path, 2, 1, [applied(1)])
    assert remains(tmp_path) == {0: [(1, 0)], 1: [(2, 0)]}
    write(tmp_path, 3, 0, [])
    assert remains(tmp_path) == {}


def test_a_rollback_makes_void_within_its_attempt_and_before(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, [applied(0), applied(1), applied(2)])
    write(tmp_path, 2, 2, [applied(2), {"resume": 1, "reason": "spike"}, {"step": 1, "skipped": "spike"}, applied(2)])
    history = read_history(str(tmp_path))
    assert {step: [(one.attempt, one.skipped) for one in records] for step, records in history.steps.items()} == {
        0: [(1, None)],
        1: [(2, "spike")],
        2: [(2, None)],
    }


def test_a_step_that_is_recorded_twice_stays_twice(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, [applied(0), applied(0)])
    assert remains(tmp_path) == {0: [(1, 0), (1, 0)]}


def test_ranks_of_an_attempt_are_read_together_and_worlds_may_change(tmp_path: Path) -> None:
    for rank in range(2):
        write(tmp_path, 1, 0, [applied(0), applied(1)], rank=rank, world=2)
    for rank in range(3):
        write(tmp_path, 2, 1, [applied(1), {"closed": 2}], rank=rank, world=3)
    assert remains(tmp_path) == {0: [(1, 0), (1, 1)], 1: [(2, 0), (2, 1), (2, 2)]}
    first, second = read_history(str(tmp_path)).attempts
    assert (first.world_size, first.ranks, first.closed) == (2, (0, 1), None)
    assert (second.world_size, second.start_step, second.closed) == (3, 1, 2)
    (tmp_path / "attempt-00002-rank-00001.jsonl").unlink()
    assert read_history(str(tmp_path)).closed is None


@pytest.mark.parametrize("torn", ['{"step": 1, "fir', "\n", "\0\0\0\0", '{"step":1}', "[]\n"])
def test_a_torn_last_line_is_passed_over_and_one_within_is_refused(tmp_path: Path, torn: str) -> None:
    write(tmp_path, 1, 0, [applied(0), torn])
    assert list(remains(tmp_path)) == [0]
    path = write(tmp_path, 1, 0, [applied(0), torn if torn.endswith("\n") else torn + "\n", "{\n", applied(2)])
    with pytest.raises(LedgerError, match=rf"{path}:\d: not a line of a ledger"):
        read_history(str(tmp_path))


def test_an_attempt_that_was_killed_before_its_first_line_is_none(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, [applied(0)])
    (tmp_path / "attempt-00002-rank-00000.jsonl").write_text('{"format": "gri')
    assert remains(tmp_path) == {0: [(1, 0)]}
    (tmp_path / "attempt-00001-rank-00000.jsonl").write_text("")
    with pytest.raises(LedgerError, match="the ledger has no line"):
        read_history(str(tmp_path))


def test_parts_of_a_file_are_read_in_order(tmp_path: Path) -> None:
    path = write(tmp_path, 1, 0, [applied(0)])
    path.rename(tmp_path / "attempt-00001-rank-00000-part-00000.jsonl")
    (tmp_path / "attempt-00001-rank-00000-part-00001.jsonl").write_text(json.dumps(applied(1)) + "\n")
    assert list(remains(tmp_path)) == [0, 1]


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no ledger; it would hold files like"):
        read_history(str(tmp_path / "none"))
    path = write(tmp_path, 1, 0, [])
    path.rename(tmp_path / "attempt-00002-rank-00000.jsonl")
    with pytest.raises(LedgerError, match=r"is of attempt 1, rank 0; it was renamed"):
        read_history(str(tmp_path))
    write(tmp_path, 2, 0, [], format="other")
    with pytest.raises(LedgerError, match="begins without a header"):
        read_history(str(tmp_path))
    write(tmp_path, 2, 0, [], rank=0, world=2)
    write(tmp_path, 2, 0, [], rank=1, world=2, plan_digest="other")
    with pytest.raises(LedgerError, match="its ranks differ in plan_digest"):
        read_history(str(tmp_path))


def test_checkpoints_tell_what_they_have_learned_from(tmp_path: Path) -> None:
    write(
        tmp_path,
        1,
        0,
        [applied(0), applied(1), {"checkpoint": "c2", "step": 2}, applied(2), {"checkpoint": "c3", "step": 3}],
    )
    write(tmp_path, 2, 2, [{"step": 2, "skipped": "spike"}, applied(3), {"checkpoint": "c4", "step": 4}])
    history = read_history(str(tmp_path), steps=range(0), watch=[0, 2])
    assert history.steps == {}
    assert [(one.path, sorted(one.learned), one.abandoned) for one in history.checkpoints] == [
        ("c2", [0], False),
        ("c3", [0, 2], True),
        ("c4", [0], False),
    ]


def test_only_the_steps_that_are_wanted_are_kept(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, [applied(step) for step in range(9)])
    assert list(read_history(str(tmp_path), steps=range(3, 5)).steps) == [3, 4]
