"""A run: stopped anywhere and resumed it is the run that was never stopped; spikes are rolled back and skipped."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from train.feed.batch import Batch
from train.pretrain.checkpoints import CheckpointError, checkpoint_folder, checkpoint_steps
from train.pretrain.guard import Diverged, SpikeGuard
from train.pretrain.loop import Course, follow
from train.pretrain.metrics import METRICS, TIMED, read_metrics
from train.pretrain.optimisation import Optimisation
from train.pretrain.trainer import Trainer, TrainingError

GUARD = SpikeGuard(window_steps=8, threshold=8.0, patience_steps=2, max_rollbacks=2)
SETTINGS = Optimisation(
    learning_rate=0.01,
    warmup_steps=0,
    checkpoint_every_steps=4,
    keep_checkpoints=3,
    evaluate_every_steps=3,
    guard=GUARD,
)


class Stopped(Exception):
    """Stands for a kill between any two steps."""


class Run:
    """A run of 20 steps; `stop_at` ends it before that step, `spoilt` makes the losses of steps enormous, `ruined` the
    weights after them infinite, and `unmeasured` what is measured after them."""

    def __init__(self, tiny: Any, made_batch: Any, out: Path | None, **settings: Any) -> None:
        self.trainer = Trainer(tiny(), replace(SETTINGS, **settings), domains=2)
        self.made_batch, self.out = made_batch, out
        self.spoilt: dict[int, float] = {}
        self.ruined: set[int] = set()
        self.unmeasured: set[int] = set()
        self.seen: list[int] = []

    def go(self, steps: int = 20, stop_at: int | None = None, **course: Any) -> Any:
        def batches(start: int) -> Iterator[Batch]:
            for step in count(start):
                if step == stop_at:
                    raise Stopped
                yield self.made_batch(step)

        plain: Callable[..., Any] = Trainer.step
        trainer = self.trainer

        def step(batch: Batch, *, learning_rate: float) -> Any:
            done = plain(trainer, batch, learning_rate=learning_rate)
            self.seen.append(batch.step)
            if batch.step in self.ruined:
                next(iter(trainer.model.parameters())).data.fill_(float("inf"))
            factor = self.spoilt.get(batch.step)
            return done if factor is None else replace(done, loss=done.loss * factor)

        trainer.step = step  # type: ignore[method-assign]
        told = Course(
            steps=steps,
            batches=batches,
            learning_rate=lambda step: 0.01 / (1 + step),
            domains=("one", "two"),
            evaluate=lambda: {"weights": self.measure(), "by_domain": {}},
            **course,
        )
        return follow(trainer, told, None if self.out is None else str(self.out))

    def measure(self) -> float:
        return float("nan") if self.seen[-1] in self.unmeasured else float(self.weights().sum())

    def weights(self) -> torch.Tensor:
        return torch.cat([one.detach().reshape(-1) for one in self.trainer.model.parameters()])

    def metrics(self) -> list[dict[str, Any]]:
        return [{key: row[key] for key in row if key not in TIMED} for row in read_metrics(str(self.out))]


@pytest.fixture
def run(tiny: Any, made_batch: Any) -> Callable[..., Run]:
    return lambda out, **settings: Run(tiny, made_batch, out, **settings)


@pytest.mark.parametrize("stops", [(7,), (5, 9), (4, 4), (1, 2, 19), (8, 10, 11)])
def test_a_run_stopped_and_resumed_is_bit_equal_in_weights_and_metrics(
    run: Any, tmp_path: Path, stops: tuple[int, ...]
) -> None:
    whole = run(tmp_path / "whole")
    done = whole.go()
    for stop in stops:
        with pytest.raises(Stopped):
            run(tmp_path / "parts").go(stop_at=stop)
    parts = run(tmp_path / "parts")
    assert parts.go() == done
    assert torch.equal(whole.weights(), parts.weights())
    assert whole.metrics() == parts.metrics()


def test_a_finished_run_does_nothing_more(run: Any, tmp_path: Path) -> None:
    done = run(tmp_path).go()
    again = run(tmp_path)
    assert again.go() == done
    assert again.seen == []


def test_checkpoints_are_kept_as_told(run: Any, tmp_path: Path) -> None:
    run(tmp_path).go()
    assert checkpoint_steps(str(tmp_path)) == [12, 16, 20]
    run(tmp_path / "all", keep_checkpoints=None, guard=None).go()
    assert checkpoint_steps(str(tmp_path / "all")) == [4, 8, 12, 16, 20]


def test_a_checkpoint_without_manifest_is_none(run: Any, tmp_path: Path) -> None:
    run(tmp_path).go()
    (Path(checkpoint_folder(str(tmp_path), 20)) / "manifest.json").unlink()
    again = run(tmp_path)
    again.go()
    assert again.seen == [16, 17, 18, 19]


def test_a_damaged_checkpoint_is_named(run: Any, tmp_path: Path) -> None:
    run(tmp_path).go()
    file = Path(checkpoint_folder(str(tmp_path), 20)) / "tensors-00000.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"step-00000020/tensors-00000\.safetensors: missing or damaged; remove "):
        run(tmp_path).go()


def test_a_spike_is_rolled_back_and_its_steps_are_skipped(run: Any, tmp_path: Path) -> None:
    spoilt = run(tmp_path)
    spoilt.spoilt = {9: 50.0, 10: 50.0}
    done = spoilt.go()
    assert [(one["first"], one["last"]) for one in done.rollbacks] == [(9, 10)]
    assert spoilt.seen == [*range(11), 8, *range(11, 20)]  # back to the checkpoint of step 8
    rows = spoilt.metrics()
    (told,) = (row for row in rows if row["kind"] == "rollback")
    assert (told["step"], told["first"], told["last"]) == (8, 9, 10)
    assert told["reason"].startswith("loss ")
    assert [row["step"] for row in rows if row["kind"] == "skipped"] == [9, 10]
    assert [row["step"] for row in rows if row["kind"] == "step"] == [*range(9), *range(11, 20)]


def test_what_a_spike_did_to_the_weights_is_undone(run: Any, tmp_path: Path) -> None:
    spoilt, skipping = run(tmp_path / "spoilt"), run(tmp_path / "skipping")
    spoilt.spoilt = {9: 50.0, 10: 50.0}
    spoilt.go()
    # The same run if steps 9 and 10 had never been: their batches are never trained on.
    for step in (*range(9), *range(11, 20)):
        Trainer.step(skipping.trainer, skipping.made_batch(step), learning_rate=0.01 / (1 + step))
    assert torch.equal(spoilt.weights(), skipping.weights())


@pytest.mark.parametrize("stop", [9, 10, 11, 13])
def test_a_run_killed_around_a_spike_ends_the_same(run: Any, tmp_path: Path, stop: int) -> None:
    runs = [run(tmp_path / name) for name in ("whole", "killed", "killed")]
    for one in runs:
        one.spoilt = {9: 50.0, 10: 50.0}
    done = runs[0].go()
    with pytest.raises(Stopped):
        runs[1].go(stop_at=stop)
    assert runs[2].go() == done
    assert torch.equal(runs[0].weights(), runs[2].weights())
    assert runs[0].metrics() == runs[2].metrics()


def test_nan_is_rolled_back_at_once_even_from_the_first_step(run: Any, tmp_path: Path) -> None:
    spoilt = run(tmp_path)
    spoilt.spoilt = {0: float("nan")}
    (told,) = spoilt.go().rollbacks
    assert (told["step"], told["first"], told["last"]) == (0, 0, 0)
    assert spoilt.seen[:2] == [0, 1]


def test_a_run_that_keeps_spiking_stops_with_a_reason(run: Any, tmp_path: Path) -> None:
    spoilt = run(tmp_path)
    spoilt.spoilt = {9: float("nan"), 11: float("nan"), 13: float("nan")}
    with pytest.raises(
        Diverged, match=r"step 13: loss nan \(from step 13 on\), after 2 rollbacks; lower learning_rate"
    ):
        spoilt.go()


def test_two_spikes_behind_one_checkpoint_are_both_skipped(run: Any, tmp_path: Path) -> None:
    spoilt = run(tmp_path)
    spoilt.spoilt = {9: float("nan"), 11: float("nan")}
    done = spoilt.go()
    assert [one["first"] for one in done.rollbacks] == [9, 11]
    assert [row["first"] for row in spoilt.metrics() if row["kind"] == "rollback"] == [9, 11]
    assert spoilt.seen == [*range(10), 8, 10, 11, 8, 10, *range(12, 20)]


def test_without_a_folder_or_a_guard_there_is_no_way_back(run: Any) -> None:
    for settings in ({}, {"guard": None}):
        spoilt = run(None, **settings)
        spoilt.trainer.model.norm.register_forward_hook(lambda *told: told[2] * float("nan"))
        with pytest.raises(Diverged, match="step 0: loss nan"):
            spoilt.go()


def test_a_checkpoint_from_before_the_spike_is_kept_however_many_come_after(run: Any, tmp_path: Path) -> None:
    spoilt = run(tmp_path, checkpoint_every_steps=1, keep_checkpoints=2, guard=replace(GUARD, patience_steps=4))
    spoilt.spoilt = dict.fromkeys(range(9, 13), 50.0)
    (told,) = spoilt.go().rollbacks
    assert (told["step"], told["first"], told["last"]) == (9, 9, 12)


def test_the_guard_takes_a_new_level_for_normal_where_the_course_says_so(run: Any, tmp_path: Path) -> None:
    spoilt = run(tmp_path)
    spoilt.spoilt = dict.fromkeys(range(10, 20), 3.0)
    assert spoilt.go(anew=frozenset({10})).rollbacks == []


@pytest.mark.parametrize("kind", ["ruined", "unmeasured"])
@pytest.mark.parametrize("step", [11, 19])  # before a checkpoint and an evaluation, and at the end
def test_a_model_that_an_update_ruined_is_never_stored(run: Any, tmp_path: Path, kind: str, step: int) -> None:
    made = run(tmp_path, keep_checkpoints=None)
    getattr(made, kind).add(step)
    done = made.go()
    assert (done.step, [(one["first"], one["last"]) for one in done.rollbacks]) == (20, [(step, step)])
    assert torch.isfinite(made.weights()).all()
    assert all(math.isfinite(row["weights"]) for row in made.metrics() if row["kind"] == "evaluation")
    assert checkpoint_steps(str(tmp_path)) == [0, 4, 8, 12, 16, 20]


def test_without_a_guard_a_ruined_model_ends_the_run(run: Any, tmp_path: Path) -> None:
    made = run(tmp_path, guard=None)
    made.ruined.add(19)
    with pytest.raises(Diverged, match="step 19: weights that are no numbers"):
        made.go()
    assert checkpoint_steps(str(tmp_path)) == [4, 8, 12, 16][-3:]


def test_a_course_may_refuse_a_checkpoint(run: Any, tmp_path: Path) -> None:
    def check(stored: dict[str, Any], step: int) -> None:
        raise TrainingError(f"{stored['weights']} at {step}")

    run(tmp_path).go(identity={"weights": 1}, check=check)
    with pytest.raises(TrainingError, match="1 at 20"):
        run(tmp_path).go(identity={"weights": 2}, check=check)


@pytest.mark.parametrize(
    ("steps", "text"),
    [([0, 1, 3], "step 3 came where step 2 was due"), ([0, 1], "they end before step 2, but the run has 20 steps")],
)
def test_batches_that_do_not_fit_the_run_are_refused(run: Any, made_batch: Any, steps: list[int], text: str) -> None:
    course = Course(
        steps=20,
        batches=lambda _: (made_batch(step) for step in steps),
        learning_rate=lambda _: 0.01,
        domains=("a", "b"),
    )
    with pytest.raises(TrainingError, match=text):
        follow(run(None).trainer, course, None)


def test_metrics_are_json_lines_and_a_torn_last_one_is_left_out(run: Any, tmp_path: Path) -> None:
    run(tmp_path).go(steps=3)
    path = tmp_path / METRICS
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["step"] * 3 + ["evaluation"]
    first = rows[0]
    assert first["targets"] == sum(first["targets_by_domain"].values()) == first["tokens"]
    assert first["loss"] == pytest.approx(
        sum(first["loss_by_domain"][name] * n for name, n in first["targets_by_domain"].items()) / first["targets"]
    )
    path.write_bytes(path.read_bytes() + b'{"kind": "st')
    assert len(list(read_metrics(str(tmp_path)))) == 4
