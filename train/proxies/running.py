"""A swarm: train what is missing, keep what is there, and tell it as one table.

OUT/proxies.json            what all runs have in common: settings, tokens; another is refused
OUT/runs/NAME/              train.proxies.training
OUT/observations.parquet    and .csv: train.proxies.observing

Runs are named after size, mixture and seed, and none depends on another. So a swarm that was killed goes on where it
was, and one that is run again with further mixtures, sizes or seeds trains only those: what came before is kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Final, Literal

import pyarrow as pa

from shards.store import filesystem, is_local, join, read_json, remove, write_json
from train.feed.token_shards import TokenShards
from train.proxies.mixtures import mixtures_of
from train.proxies.observing import FAILED, RESULT, RUNS, write_observations
from train.proxies.part import trainable_tokens
from train.proxies.planning import ProxyRun, runs_of
from train.proxies.processes import Ended, Swarm, in_processes, in_this_process
from train.proxies.settings import Proxies, ProxyError, shared_settings

COMMON, LOCK = "proxies.json", ".training"
FORMAT: Final = 1


def run(
    settings: Proxies,
    *,
    tokens: str | Sequence[str],
    out: str,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    retry_failed: bool = False,
    progress: IO[str] | None = None,
) -> pa.Table:
    """Train every run that OUT does not hold yet; return the table of all that it holds, earlier ones too.

    tokens: folders of token shards, or of the runs that made them. out: a local folder. retry_failed: train again what
    failed (what was killed is tried again in any case). progress: a line for each run that ends.
    Raises ProxyError, TokenShardsError: one line each. A run that fails is a row of the table, not an error here.
    """
    if not is_local(out):
        raise ProxyError(f"out: {out} is no local folder; train into one, and copy the table when it is done")
    folders = (tokens,) if isinstance(tokens, str) else tuple(tokens)
    shards = TokenShards.open(list(folders))
    trainable = trainable_tokens(shards, settings.held_out)
    runs = runs_of(settings, mixtures_of(settings, tuple(trainable)), trainable, shards.vocab_size)
    with _alone(out):
        _check_common(settings, shards, out)
        missing = [one for one in runs if not _is_over(out, one, retry_failed)]
        told = _Progress(progress, len(runs), len(missing))
        swarm = Swarm(settings, folders, out, device)
        if missing and settings.workers:
            in_processes(swarm, missing, settings.workers, lambda ended: _record(out, ended, told))
        elif missing:
            in_this_process(swarm, missing, lambda ended: _record(out, ended, told))
        return write_observations(out)


def _check_common(settings: Proxies, shards: TokenShards, out: str) -> None:
    """Refuse a folder whose runs were trained otherwise; say how in a new one."""
    now: dict[str, Any] = {
        "format": FORMAT,
        "settings": shared_settings(settings),
        "tokens": shards.digest,
        "tokenizer": shards.tokenizer_digest,
    }
    before = read_json(join(out, COMMON))
    if before is None:
        write_json(join(out, COMMON), now)
        return
    if (before["tokens"], before["tokenizer"]) != (now["tokens"], now["tokenizer"]):
        raise ProxyError(f"{out}: its runs were trained on other tokens; use another out")
    for name, value in now["settings"].items():
        if before["settings"].get(name) != value:
            raise ProxyError(
                f"{name}: {value} here, but the runs in {out} have {before['settings'].get(name)}; put it back, or use "
                "another out"
            )


def _is_over(out: str, wanted: ProxyRun, retry_failed: bool) -> bool:
    """Whether a run is done or failed for good. Raises ProxyError where the name belongs to a run of another size or
    mixture."""
    folder = join(out, RUNS, wanted.name)
    done, failed = read_json(join(folder, RESULT)), read_json(join(folder, FAILED))
    stored = done or failed
    if stored is None:
        return False
    if stored["run"] != wanted.to_json():
        told = next(key for key, value in wanted.to_json().items() if stored["run"].get(key) != value)
        raise ProxyError(f"{wanted.name}: {out} holds it with another {told}; give the size or mixture another name")
    if done is not None:
        return True
    if retry_failed or stored["died"]:
        remove(join(folder, FAILED))
        return False
    return True


def _record(out: str, ended: Ended, told: _Progress) -> None:
    if ended.error is not None:
        failure = {"format": FORMAT, "run": ended.run.to_json(), "error": ended.error, "died": ended.died}
        write_json(join(out, RUNS, ended.run.name, FAILED), failure)
    told.ended(ended)


class _Progress:
    """A plain line for each run that ends."""

    def __init__(self, stream: IO[str] | None, runs: int, missing: int) -> None:
        self.stream, self.missing, self.done, self.failed = stream, missing, 0, 0
        self.begun = time.monotonic()
        self.say(f"{runs} runs, {runs - missing} of them there already")

    def ended(self, ended: Ended) -> None:
        self.done += 1
        self.failed += ended.error is not None
        left = (time.monotonic() - self.begun) / self.done * (self.missing - self.done)
        measured = ended.result["metrics"]["bits_per_byte"] if ended.result else None
        how = f"failed: {ended.error}" if measured is None else f"{measured:.4f} bits per byte"
        failed = f", {self.failed} failed" if self.failed else ""
        self.say(f"{self.done} of {self.missing}{failed}: {ended.run.name} {how}; about {left:.0f} s left")

    def say(self, line: str) -> None:
        if self.stream is not None:
            self.stream.write(f"proxies: {line}\n")
            self.stream.flush()


@contextmanager
def _alone(out: str) -> Iterator[None]:
    """Hold OUT for this swarm, by a lock that ends with the process."""
    import fcntl

    folder = filesystem(out)[1]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, LOCK), "ab") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ProxyError(
                f"out: another swarm is training into {out}; wait for it, or use another folder"
            ) from error
        yield
