"""What a run follows, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from train.feed.batch import Batch
from train.feed.ledger import Ledger

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Course:
    """What a run follows.

    steps: updates in all. batches: from a step on, this process's rows of each step's batch in order, `batch.step` set.
    learning_rate: of a step. domains: names behind batch.domains. evaluate: a row for the metrics, on all processes.
    anew: steps from which on the guard forgets what losses were (another mixture, another batch size).
    identity: JSON that a checkpoint stores; check(stored, step) raises where a run may not go on from it.
    ledger: opens this process's ledger for an attempt that begins at a step; it is told all that is trained.
    flops_per_target, peak_flops: for the share of the accelerators' peak that is used.
    """

    steps: int
    batches: Callable[[int], Iterable[Batch]]
    learning_rate: Callable[[int], float]
    domains: tuple[str, ...] = ()
    evaluate: Callable[[], Json] | None = None
    anew: frozenset[int] = frozenset()
    identity: Json = field(default_factory=dict)
    check: Callable[[Json, int], None] | None = None
    ledger: Callable[[int], Ledger] | None = None
    flops_per_target: float | None = None
    peak_flops: float | None = None


@dataclass(kw_only=True)
class Standing:
    """Where a run stands: all of its state that is not tensors.

    step: the next. targets: trained on so far. rollbacks: what the guard did, with the steps first .. last that it
    skips each time. loss: of the last step. evaluation: the last row.
    """

    step: int = 0
    targets: int = 0
    rollbacks: list[Json] = field(default_factory=list)
    loss: float | None = None
    evaluation: Json | None = None

    def skips(self, step: int) -> bool:
        return any(one["first"] <= step <= one["last"] for one in self.rollbacks)
