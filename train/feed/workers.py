"""The loader's processes: torch's DataLoader over an IterableDataset. Imported only where torch is wanted."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from train.feed.batch import Batch

if TYPE_CHECKING:
    from train.feed.loader import Rank, Read


class StepDataset(IterableDataset[Batch]):
    """Batches of steps start to stop; in a worker, each W-th of them, so that a DataLoader gives them in order."""

    def __init__(self, rank: Rank, start: int, stop: int | None) -> None:
        self.rank = rank
        self.start = start
        self.stop = stop

    def __iter__(self) -> Iterator[Batch]:
        return map(self.rank.batch, self.mine())

    def mine(self) -> Iterable[int]:
        """The steps that are this worker's."""
        info = get_worker_info()
        first, stride = (self.start, 1) if info is None else (self.start + info.id, info.num_workers)
        return count(first, stride) if self.stop is None else range(first, self.stop, stride)


@dataclass(frozen=True)
class _Failed:
    """What a worker met, handed over as it is: a DataLoader would put a traceback into its message."""

    error: Exception


class _Told(IterableDataset["Read | _Failed"]):
    def __init__(self, dataset: StepDataset) -> None:
        self.dataset = dataset

    def __iter__(self) -> Iterator[Read | _Failed]:
        from train.feed.loader import picklable

        try:
            yield from map(self.dataset.rank.read, self.dataset.mine())
        except Exception as error:
            yield _Failed(picklable(error))


def batches(
    dataset: StepDataset, workers: int, prefetch: int, start_method: str | None
) -> Generator[Batch, None, None]:
    """Batches in order of steps. Closing it, or an error, ends the processes."""
    loader: DataLoader[Read | _Failed] = DataLoader(
        _Told(dataset),
        batch_size=None,
        num_workers=workers,
        prefetch_factor=prefetch,
        multiprocessing_context=start_method,
        collate_fn=_as_it_is,
        # Its own generator: the seed for its workers would be drawn from torch's global one, and a run with workers
        # would then train otherwise than one without.
        generator=torch.Generator(),
    )
    made = iter(loader)
    try:
        for found in made:
            if isinstance(found, _Failed):
                raise found.error
            yield dataset.rank.laid_out(found)
    finally:
        del made


def _as_it_is(found: Any) -> Any:
    return found
