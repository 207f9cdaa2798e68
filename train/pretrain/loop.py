"""A run: steps, schedule, evaluation, metrics, checkpoints, exact resume, and rollback of loss spikes.

    done = follow(trainer, Course(steps=..., batches=..., learning_rate=..., identity=...), out, progress=...)

Whoever has batches (pretraining, fine-tuning, proxies) writes a Course and gets all of it. A run that was killed at any
moment goes on from its newest checkpoint when it is followed again, on a CPU with the same bits as if never stopped:
everything is a function of what the checkpoint holds and of the step.

A step is a number of the data's order, and stays one when batches are skipped: after a spike in steps 40 .. 43 the run
returns to the newest checkpoint at or before step 40, and goes through steps 40 .. 43 without training on them. So the
schedule ends where it would have ended, and the data of any step is what it is in any other run of the same plan.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from contextlib import closing, nullcontext
from typing import Any

from train.feed.batch import Batch
from train.feed.ledger import Ledger
from train.pretrain.checkpoints import (
    checkpoint_folder,
    checkpoint_steps,
    read_state,
    read_tensors,
    remove_checkpoints,
    save_checkpoint,
)
from train.pretrain.course import Course, Json, Standing
from train.pretrain.guard import Diverged, Spike, Watch
from train.pretrain.metrics import Metrics, Progress
from train.pretrain.state import NoTargetsError, TrainingError
from train.pretrain.trainer import Stepped, Trainer

__all__ = ["Course", "Standing", "follow"]


def follow(trainer: Trainer, course: Course, out: str | None, *, progress: Progress | None = None) -> Standing:
    """Train to the end of the course, from the newest checkpoint in out/checkpoints if there is one.

    out: a local folder that all processes see; None stores nothing (and the guard can only stop the run).
    Raises TrainingError, CheckpointError, and Diverged when the guard gives up.
    """
    run = _Run(trainer, course, out, progress or Progress(steps=course.steps))
    try:
        run.resume()
        with nullcontext() if run.ledger is None else run.ledger:
            while run.standing.step < course.steps:
                spike = run.go_on()
                if spike is not None:
                    run.roll_back(spike)
    finally:
        run.metrics.close()
    if course.steps and not run.standing.targets:
        raise NoTargetsError(f"steps 0 to {course.steps}: no target of any batch counts; there is nothing to train on")
    return run.standing


class _Run:
    def __init__(self, trainer: Trainer, course: Course, out: str | None, progress: Progress) -> None:
        self.trainer, self.course, self.out, self.progress = trainer, course, out, progress
        self.settings, self.world = trainer.settings, trainer.world
        self.leads = self.world.rank == 0
        self.standing = Standing()
        self.watch = None if self.settings.guard is None else Watch(self.settings.guard)
        self.metrics = Metrics(out if self.leads else None)
        self.ledger: Ledger | None = None

    def resume(self) -> None:
        """Stand at the newest checkpoint, or at the beginning: from step 0 nothing is trained, so settings are free."""
        steps = [step for step in checkpoint_steps(self.out) if step] if self.out is not None else []
        if self.out is not None and steps:
            state = read_state(self.out, steps[-1])
            if self.course.check is not None:
                self.course.check(state["identity"], steps[-1])
            self.return_to(steps[-1], state)
        else:
            self.metrics.truncate(0)
        if self.standing.step == self.course.steps:
            return
        if self.course.ledger is not None:
            self.ledger = self.course.ledger(self.standing.step)
        if steps:
            self.progress.say(f"resumes at step {steps[-1]:,} of {self.course.steps:,}")
        elif self.watch is not None and self.watch.guard.max_rollbacks:
            self.save()

    def return_to(self, step: int, state: Json) -> None:
        assert self.out is not None
        self.trainer.load(pair for pair in read_tensors(self.out, step))
        self.standing = Standing(**state["standing"])
        if self.watch is not None and state["guard"] is not None:
            self.watch.load(state["guard"])
        self.metrics.truncate(state["metrics_bytes"])

    def go_on(self) -> Spike | None:
        """Train from where the run stands to its end, or to a spike."""
        begun = time.perf_counter()
        with closing(_generator(self.course.batches(self.standing.step))) as batches:
            for batch in batches:
                if batch.step != self.standing.step:
                    raise TrainingError(f"batches: step {batch.step} came where step {self.standing.step} was due")
                spike = self.skip(batch) if self.standing.skips(batch.step) else self.train_on(batch, begun)
                spike = spike or self.after_step()
                if spike is not None:
                    return spike
                if self.standing.step == self.course.steps:
                    return None
                begun = time.perf_counter()
        raise TrainingError(
            f"batches: they end before step {self.standing.step}, but the run has {self.course.steps} steps"
        )

    def skip(self, batch: Batch, reason: str = "spike") -> Spike | None:
        self.metrics.write({"kind": "skipped", "step": batch.step, "reason": reason})
        if self.ledger is not None:
            self.ledger.skipped(batch, reason)
        self.standing.step += 1
        return None

    def train_on(self, batch: Batch, begun: float) -> Spike | None:
        step = batch.step
        if self.watch is not None and step in self.course.anew:
            self.watch.forget()
        try:
            done = self.trainer.step(batch, learning_rate=self.course.learning_rate(step))
        except NoTargetsError:  # documents of one token, say
            return self.skip(batch, "no targets")
        if self.ledger is not None and done.applied:
            self.ledger.applied(batch)
        spike = None if self.watch is None else self.watch.judge(step, done.loss, done.gradient_norm)
        if spike is not None:
            return spike
        if not done.applied and self.watch is None:
            raise Diverged(
                f"step {step}: loss {done.loss}, gradient norm {done.gradient_norm}; lower learning_rate, or let guard "
                "roll back and skip"
            )
        self.standing.step, self.standing.loss = step + 1, done.loss
        self.standing.targets += done.targets
        self.metrics.write(self.row(done, time.perf_counter() - begun))
        return None

    def row(self, done: Stepped, seconds: float) -> Json:
        rate = done.targets / seconds
        self.progress.step(done.step, done.loss, rate)
        domains = {self.course.domains[index]: told for index, told in sorted(done.domains.items())}
        row: Json = {
            "kind": "step",
            "step": done.step,
            "loss": done.loss,
            "learning_rate": done.learning_rate,
            "gradient_norm": done.gradient_norm,
            "targets": done.targets,
            "tokens": self.standing.targets,
            "loss_by_domain": {name: total / count for name, (total, count) in domains.items()},
            "targets_by_domain": {name: count for name, (_, count) in domains.items()},
            "seconds": round(seconds, 6),
            "tokens_per_second": round(rate, 1),
        }
        if self.course.flops_per_target is not None and self.course.peak_flops is not None:
            used = rate * self.course.flops_per_target / (self.course.peak_flops * self.world.size)
            row["model_flops_utilisation"] = round(used, 4)
        return row

    def after_step(self) -> Spike | None:
        """Evaluate and store where it is due; a spike where the last update left a model that is none."""
        step, last = self.standing.step, self.standing.step == self.course.steps
        every, stores = self.settings.evaluate_every_steps, self.settings.checkpoint_every_steps
        measured = self.course.evaluate is not None and (last or (every is not None and step % every == 0))
        stored = last or (stores is not None and step % stores == 0)
        if (measured or stored) and not self.trainer.is_finite():
            return self.broken("weights that are no numbers")
        if measured and self.course.evaluate is not None:
            told = self.course.evaluate()
            wrong = [name for name, value in told.items() if isinstance(value, float) and not math.isfinite(value)]
            if wrong:
                return self.broken(f"held-out {wrong[0]} {told[wrong[0]]}")
            self.standing.evaluation = told
            self.metrics.write({"kind": "evaluation", "step": step, **told})
        if stored:
            self.save()
        return None

    def broken(self, reason: str) -> Spike:
        """The last update made the model unusable: what is stored must come from before it."""
        last = self.standing.step - 1
        since = None if self.watch is None else self.watch.suspect_since
        return Spike(last if since is None else since, last, reason)

    def save(self) -> None:
        if self.out is None:
            return
        if self.ledger is not None:
            self.ledger.checkpoint(self.standing.step, checkpoint_folder("", self.standing.step))
        state = {
            "identity": self.course.identity,
            "standing": vars(self.standing),
            "guard": None if self.watch is None else self.watch.state(),
            "metrics_bytes": self.metrics.settle(),
            "processes": self.world.size,
        }
        save_checkpoint(self.out, self.standing.step, self.trainer.tensors(), state, writes=self.leads)
        if self.leads and self.settings.keep_checkpoints is not None:
            steps = checkpoint_steps(self.out)
            kept = set(steps[-self.settings.keep_checkpoints :])
            since = None if self.watch is None else self.watch.suspect_since
            kept |= {max((step for step in steps if since is None or step <= since), default=0)}
            remove_checkpoints(self.out, [step for step in steps if step not in kept])
        self.world.wait()

    def roll_back(self, spike: Spike) -> None:
        """Return to the newest checkpoint before a spike; its steps will be skipped."""
        guard, past = self.settings.guard, self.standing.rollbacks
        steps = [] if self.out is None else checkpoint_steps(self.out)
        before = [step for step in steps if step <= spike.first]
        where = f"step {spike.last}: {spike.reason} (from step {spike.first} on)"
        if guard is None or len(past) >= guard.max_rollbacks or not before or self.out is None:
            raise Diverged(
                f"{where}, after {len(past)} rollbacks; lower learning_rate, or look at the data of these steps"
            )
        self.world.wait()  # all have seen what there is
        if self.leads:
            remove_checkpoints(self.out, [step for step in steps if step > spike.first])
        self.world.wait()
        self.return_to(before[-1], read_state(self.out, before[-1]))
        if self.ledger is not None:
            self.ledger.rolled_back(before[-1], spike.reason)
        told = {"step": before[-1], "first": spike.first, "last": spike.last, "reason": spike.reason}
        # The checkpoint may be older than the last rollback, too, which must not be forgotten.
        for row in [*past[len(self.standing.rollbacks) :], told]:
            self.standing.rollbacks.append(row)
            self.metrics.write({"kind": "rollback", **row})
        self.progress.say(f"{where}: back to step {before[-1]}, skipping {spike.first} .. {spike.last}")


def _generator(batches: Iterable[Batch]) -> Any:
    """A generator over batches: what closes the workers of a loader when the loop leaves early."""
    yield from batches
