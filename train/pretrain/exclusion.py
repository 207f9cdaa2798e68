"""One run a folder at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from shards.store import filesystem, sweep
from train.pretrain.distributed import World
from train.pretrain.state import TrainingError

LOCK = ".training"


@contextmanager
def alone(out: str, world: World) -> Iterator[None]:
    """Hold OUT for this run, by a lock that ends with the process. Raises TrainingError where another run holds it."""
    folder = filesystem(out)[1]
    os.makedirs(folder, exist_ok=True)
    if world.rank != 0:
        yield
        return
    import fcntl

    with open(os.path.join(folder, LOCK), "ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise TrainingError(
                f"out: another run is training into {out}; wait for it, or use another folder"
            ) from error
        sweep(out)
        yield
