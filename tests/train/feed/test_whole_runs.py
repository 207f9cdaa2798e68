"""Whole runs of any shape: ranks, workers, batch, sequence length, packing, epochs, changes, and crashes anywhere.

The union over ranks is the plan; what was resumed twice is what was never interrupted; the audit agrees.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.train.feed.made import make_tokens
from train.feed.auditing import audit
from train.feed.batch import Batch, fill
from train.feed.ledger import Ledger
from train.feed.loader import Loader
from train.feed.plan import Plan
from train.feed.token_shards import TokenShards

MOST_STEPS = 24
NAMES = ("tokens", "documents", "positions", "loss", "domains")
CORPORA = (
    {"a": [[50, 0, 1, 1, 30], [], [200]], "b": [[3] * 40, [0, 0]], "c": [[17, 90], [64]]},
    {"only": [[1, 2, 3, 4, 5, 6, 7, 8, 9, 300]]},
    {"a": [[400]], "b": [[1]], "c": [[5] * 3, [2] * 9], "d": [[0, 11]]},
)


@dataclass(frozen=True)
class Attempt:
    """Trains from the last checkpoint on; killed at a share of what is left, and each rank a little sooner or later."""

    ranks: int
    workers: int
    killed: float
    checkpoint_every: int


attempts = st.builds(
    Attempt,
    ranks=st.integers(1, 16),
    workers=st.integers(0, 8),
    killed=st.floats(0, 1),
    checkpoint_every=st.integers(1, 5),
)


@st.composite
def settings_of(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "sequence_tokens": draw(st.integers(1, 40)),
        "batch_sequences": draw(st.integers(1, 20)),
        "packing": draw(st.sampled_from(["concat", "best_fit"])),
        "overflow": draw(st.sampled_from(["split", "crop", "drop"])),
        "window_sequences": draw(st.integers(1, 9)),
        "max_epochs": draw(st.one_of(st.none(), st.floats(0.1, 3))),
    }


def weights_of(draw: st.DrawFn, names: list[str]) -> dict[str, int] | None:
    if draw(st.booleans()):
        return None
    return {name: draw(st.integers(0 if number else 1, 5)) for number, name in enumerate(names)}


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, dict[str, Any], list[tuple[int, dict[str, Any]]], list[Attempt]]:
    """Corpus, the plan's settings, changes by step, and attempts (the last of which is not killed)."""
    corpus = draw(st.integers(0, len(CORPORA) - 1))
    names = sorted(CORPORA[corpus])
    first = draw(settings_of()) | {
        "weights": weights_of(draw, names),
        "seed": draw(st.integers(0, 9)),
        "held_out": draw(st.sampled_from([0.0, 0.0, 0.2])),
        "block_tokens": draw(st.sampled_from([1, 7, 64, 1 << 16])),
    }
    changes = []
    for step in sorted(draw(st.lists(st.integers(0, MOST_STEPS), max_size=2))):
        change = draw(settings_of())
        chosen = draw(st.sets(st.sampled_from(sorted(change)), min_size=1))
        change = {name: change[name] for name in chosen}
        if draw(st.booleans()):
            change["weights"] = weights_of(draw, names)
        changes.append((step, change))
    return corpus, first, changes, draw(st.lists(attempts, min_size=1, max_size=3))


def plan_of(shards: TokenShards, first: dict[str, Any], changes: list[tuple[int, dict[str, Any]]]) -> Plan:
    plan = Plan.new(shards, **first)
    for step, change in changes:
        if plan.steps is None or step <= plan.steps:
            plan = plan.change(step, **change)
    return plan


def split(loader: Loader, workers: int, stop: int) -> Iterator[Batch]:
    """The loader's steps as worker processes would make them: each by a copy that has seen no other worker's steps."""
    copies = [pickle.loads(pickle.dumps(loader)) for _ in range(max(1, workers))]
    for step in range(loader.start_step, stop):
        yield copies[(step - loader.start_step) % len(copies)].batch(step)


def equal(one: Batch, other: Batch) -> bool:
    return (one.step, one.first_sequence) == (other.step, other.first_sequence) and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in NAMES
    )


def joined(batches: list[Batch]) -> Batch:
    arrays = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in NAMES}
    return Batch(**arrays, step=batches[0].step, first_sequence=batches[0].first_sequence)


def train(run: Run, attempt: Attempt, number: int, start: int, *, last: bool) -> dict[int, Batch]:
    """One attempt of all ranks from `start` on: the steps before its last checkpoint. Then it is killed."""
    killed = run.stop if last else start + round(attempt.killed * (run.stop - start))
    saved = run.stop if last else max(start, killed - killed % attempt.checkpoint_every)
    steps: dict[int, list[Batch]] = {step: [] for step in range(start, saved)}
    for rank in range(attempt.ranks):
        told = {"rank": rank, "world_size": attempt.ranks, "plan": run.plan, "start_step": start}
        loader = Loader(shards=run.shards, stop_step=run.stop, **told)
        ledger = Ledger.open(run.folder, attempt=number, **told)
        # Where it is killed, some ranks have recorded one step more than others.
        for batch in split(loader, attempt.workers, min(run.stop, killed + rank % 2)):
            ledger.applied(batch)
            if batch.step < saved:
                steps[batch.step].append(batch)
            if batch.step + 1 == saved:
                ledger.checkpoint(saved, f"step-{saved}")
        if last:
            ledger.close()
        ledger.abandon()
    return {step: joined(batches) for step, batches in steps.items()}


@dataclass(frozen=True)
class Run:
    plan: Plan
    shards: TokenShards
    folder: str
    stop: int


def check(shards: TokenShards, folder: Path, first: dict[str, Any], changes: Any, tries: list[Attempt]) -> None:
    plan = plan_of(shards, first, changes)
    shutil.rmtree(folder, ignore_errors=True)
    stop = MOST_STEPS if plan.steps is None else min(MOST_STEPS, plan.steps)
    run = Run(plan, shards, str(folder), stop)
    seen: dict[int, Batch] = {}
    for number, attempt in enumerate(tries, 1):
        seen |= train(run, attempt, number, len(seen), last=number == len(tries))
    assert list(seen) == list(range(stop))
    for step, batch in seen.items():
        assert equal(batch, fill(plan.batch(step), shards, step=step)), step
    if not stop:
        return
    found = audit(str(folder), plan, shards, verify="all")
    assert found.problems == ()
    assert (found.applied_steps, found.verified_steps, found.unfinished_step) == (stop, stop, None)
    consumed = plan.consumed(stop)
    accounts = plan.account(0, stop)
    for domain in found.domains:
        account = accounts[domain.name]
        assert domain.tokens == account.trained + account.unpredicted
        assert domain.tokens + account.cropped + account.dropped == consumed[domain.name]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> list[TokenShards]:
    folder = tmp_path_factory.mktemp("corpora")
    return [TokenShards.open(make_tokens(folder / str(number), told)) for number, told in enumerate(CORPORA)]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(made=runs())
def test_any_run_that_is_resumed_anywhere_trains_on_its_plan(
    corpora: list[TokenShards], tmp_path_factory: pytest.TempPathFactory, made: Any
) -> None:
    corpus, first, changes, tries = made
    check(corpora[corpus], tmp_path_factory.getbasetemp() / "run", first, changes, tries)


@pytest.mark.heavy
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(made=runs())
def test_many_runs_that_are_resumed_anywhere_train_on_their_plans(
    corpora: list[TokenShards], tmp_path_factory: pytest.TempPathFactory, made: Any
) -> None:
    corpus, first, changes, tries = made
    check(corpora[corpus], tmp_path_factory.getbasetemp() / "heavy-run", first, changes, tries)


def test_what_a_carried_window_would_crop_is_not_lost_before_its_first_row(
    corpora: list[TokenShards], tmp_path: Path
) -> None:
    first = {"sequence_tokens": 1, "batch_sequences": 6, "packing": "best_fit", "overflow": "crop"}
    first |= {"window_sequences": 7, "max_epochs": None, "weights": None, "seed": 0, "held_out": 0.0, "block_tokens": 1}
    changes = [(2, {"sequence_tokens": 25}), (24, {"window_sequences": 1})]
    check(corpora[0], tmp_path / "run", first, changes, [Attempt(1, 0, 0.0, 1)])


@pytest.mark.parametrize("packing", ["concat", "best_fit"])
def test_runs_that_are_resumed_at_the_ends_of_epochs_train_on_their_plans(
    corpora: list[TokenShards], tmp_path: Path, packing: str
) -> None:
    first = {"sequence_tokens": 16, "batch_sequences": 5, "seed": 1, "packing": packing, "max_epochs": 2}
    plan = plan_of(corpora[0], first, [])
    assert plan.steps is not None
    epoch = plan.tokens
    ends = [
        step
        for step in range(plan.steps)
        for name in plan.domains
        if plan.consumed(step)[name] < epoch[name] <= plan.consumed(step + 1)[name]
    ]
    assert ends
    for end in {*ends, plan.steps - 1, plan.steps}:
        share = end / plan.steps
        tries = [Attempt(3, 2, share, 1), Attempt(2, 0, 0, 1), Attempt(5, 4, 1, 1)]
        check(corpora[0], tmp_path / "run", first, [], tries)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [1, 3, 8])
def test_processes_make_what_copies_make(corpora: list[TokenShards], workers: int) -> None:
    plan = Plan.new(corpora[0], sequence_tokens=16, batch_sequences=5, seed=1, packing="best_fit", max_epochs=2)
    plan = plan.change(4, sequence_tokens=9, weights={"a": 1, "b": 1, "c": 3})
    for rank in range(2):
        loader = Loader(plan, corpora[0], rank=rank, world_size=2, workers=workers, start_step=3)
        plain = Loader(plan, corpora[0], rank=rank, world_size=2, start_step=3)
        assert all(equal(*pair) for pair in zip(loader, plain, strict=True))
