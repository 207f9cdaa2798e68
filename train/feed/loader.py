"""The loader: a plan's batches in the order of steps, made by any number of processes, from any step on."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from numpy.typing import NDArray

from train.feed.batch import Batch, fill, lay_out, read
from train.feed.ledger import Ledger
from train.feed.spans import Spans
from train.feed.token_shards import TokenShards

if TYPE_CHECKING:
    from train.feed.workers import StepDataset


class Steps(Protocol):
    """What a loader needs of a plan: how many steps it has (None: it never ends), and the spans of each."""

    @property
    def steps(self) -> int | None: ...

    def batch(self, step: int, rank: int = 0, world_size: int = 1) -> Spans: ...

    def state(self) -> Mapping[str, Any]: ...


class Read(NamedTuple):
    """The spans of a step and their tokens, in the shards' own width."""

    step: int
    spans: Spans
    tokens: NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Rank:
    """One rank's part of a plan's batches. It knows no past: any step costs what the next one costs."""

    plan: Steps
    shards: TokenShards
    rank: int
    world_size: int
    isolate: bool

    def batch(self, step: int) -> Batch:
        spans = self.plan.batch(step, self.rank, self.world_size)
        return fill(spans, self.shards, isolate=self.isolate, step=step)

    def read(self, step: int) -> Read:
        """A step as worker processes hand it over: a tenth of the bytes of its batch."""
        spans = self.plan.batch(step, self.rank, self.world_size)
        return Read(step, spans, read(spans, self.shards, self.shards.dtype))

    def laid_out(self, found: Read) -> Batch:
        """The batch of what was read: some 0.3 ms for 131,072 tokens."""
        return lay_out(found.spans, found.tokens, isolate=self.isolate, step=found.step)


class Loader:
    """The batches of one rank for steps start_step to stop_step (without it), as many as for any other rank.

    What step k gives does not depend on workers, prefetch, start_step or how often one has iterated: nothing is
    remembered, so nothing needs to be saved but the number of the next step. Each iteration begins at start_step.

    stop_step: None is where the plan ends. rank, world_size: the rows of each global batch that are this rank's.
    workers: processes that make batches ahead (0: this one makes them when asked, without torch); worker w of W makes
    the steps start_step + w, + W, + 2W. prefetch: batches that each makes ahead. isolate: see `fill`. ledger: folder in
    which to record each step as applied when the next is asked for, for a training loop that keeps no Ledger itself (it
    should end by stop_step: a loop that is left early has not said what became of its last batch). start_method: how
    worker processes start; None is the platform's way.
    Raises ValueError for steps beyond the plan and ranks beyond the world.
    """

    def __init__(
        self,
        plan: Steps,
        shards: TokenShards,
        *,
        start_step: int = 0,
        stop_step: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        workers: int = 0,
        prefetch: int = 2,
        isolate: bool = True,
        ledger: str | None = None,
        start_method: Literal["fork", "spawn", "forkserver"] | None = None,
    ) -> None:
        end = plan.steps
        stop = end if stop_step is None else stop_step
        if not 0 <= rank < world_size:
            raise ValueError(f"rank: {rank} of {world_size}; it would be 0 to {world_size - 1}")
        if workers < 0 or prefetch < 1:
            raise ValueError(f"workers: {workers}, prefetch: {prefetch}; they would be at least 0 and 1")
        if end is not None and stop is not None and stop > end:
            raise ValueError(f"stop_step: {stop}, but the plan has {end} steps; give it more epochs, or stop earlier")
        if start_step < 0 or (stop is not None and start_step > stop):
            raise ValueError(f"start_step: {start_step}; it would be 0 to {stop}")
        self.start_step, self.stop_step = start_step, stop
        self.workers, self.prefetch, self.start_method = workers, prefetch, start_method
        self._rank = Rank(plan=plan, shards=shards, rank=rank, world_size=world_size, isolate=isolate)
        self._ledger = ledger

    def __len__(self) -> int:
        if self.stop_step is None:
            raise TypeError("a plan without end has no length; set stop_step")
        return self.stop_step - self.start_step

    def batch(self, step: int) -> Batch:
        """The batch of any one step, made here and now."""
        return self._rank.batch(step)

    def dataset(self) -> StepDataset:
        """The same as a torch IterableDataset, to put into a DataLoader of one's own with batch_size=None."""
        from train.feed.workers import StepDataset

        return StepDataset(self._rank, self.start_step, self.stop_step)

    def __iter__(self) -> Iterator[Batch]:
        batches = self._in_processes() if self.workers else self._here()
        return batches if self._ledger is None else self._recorded(batches, self._ledger)

    def _here(self) -> Iterator[Batch]:
        step = self.start_step
        while self.stop_step is None or step < self.stop_step:
            yield self._rank.batch(step)
            step += 1

    def _in_processes(self) -> Iterator[Batch]:
        from train.feed.workers import batches

        if self.start_step != self.stop_step:
            self._rank.batch(self.start_step)  # compiles here, once, what each process would else compile for itself
        with closing(batches(self.dataset(), self.workers, self.prefetch, self.start_method)) as made:
            yield from made

    def _recorded(self, batches: Iterator[Batch], folder: str) -> Iterator[Batch]:
        rank = self._rank
        with Ledger.open(
            folder,
            rank=rank.rank,
            world_size=rank.world_size,
            plan=rank.plan,
            start_step=self.start_step,
            isolate=rank.isolate,
        ) as ledger:
            for batch in batches:
                yield batch
                ledger.applied(batch)


def picklable(error: Exception) -> Exception:
    """The error itself if it can cross to another process, else its kind and text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
