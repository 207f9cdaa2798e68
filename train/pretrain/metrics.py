"""What a run measures, a JSON object a line: OUT/metrics.jsonl; and a line of progress for whoever watches.

kind step: step (from 0), loss (nats a target), learning_rate, gradient_norm, targets, tokens (targets so far),
loss_by_domain, targets_by_domain, seconds, tokens_per_second, and model_flops_utilisation where it is known.
kind evaluation: step (updates done), bits_per_byte, nats_per_token, targets, bytes; by_domain and by_language the same.
kind rollback: what the guard did. kind skipped: a step whose batch was not trained on.
Only `seconds`, `tokens_per_second` and `model_flops_utilisation` differ between two runs of the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import IO, Any

from shards.store import filesystem, join

METRICS = "metrics.jsonl"
TIMED = ("seconds", "tokens_per_second", "model_flops_utilisation")
PLAIN_LINE_S = 30.0
LIVE_LINE_S = 0.2


class Metrics:
    """The metrics file of a run in a local folder; None keeps nothing.

    A checkpoint stores `bytes`, and a run that resumes or rolls back truncates to them: what lies beyond a checkpoint
    will be measured again.
    """

    def __init__(self, out: str | None) -> None:
        self._file: IO[bytes] | None = None
        if out is not None:
            path = filesystem(join(out, METRICS))[1]
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (kept open for the run)

    def write(self, row: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(row).encode() + b"\n")

    def settle(self) -> int:
        """Bytes so far, on disk."""
        if self._file is None:
            return 0
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def truncate(self, size: int) -> None:
        if self._file is not None and os.fstat(self._file.fileno()).st_size > size:
            self._file.truncate(size)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_metrics(out: str) -> Iterator[dict[str, Any]]:
    """The rows of a run's metrics; a last line that a kill has cut is left out."""
    with open(filesystem(join(out, METRICS))[1], "rb") as lines:
        for line in lines:
            if line.endswith(b"\n"):
                yield json.loads(line)


class Progress:
    """A live line on a terminal, a plain line every 30 s elsewhere; None says nothing."""

    def __init__(self, stream: IO[str] | None = None, *, steps: int) -> None:
        self._stream = stream
        self._live = stream is not None and stream.isatty()
        self._every = LIVE_LINE_S if self._live else PLAIN_LINE_S
        self._steps = steps
        self._begun = self._told = time.monotonic()
        self._first: int | None = None

    def step(self, step: int, loss: float, tokens_per_second: float) -> None:
        """After a step (from 0) is done."""
        now = time.monotonic()
        self._first = step if self._first is None else self._first
        if self._stream is None or (now - self._told < self._every and step + 1 < self._steps):
            return
        self._told = now
        done = step + 1 - self._first
        left = (now - self._begun) / done * (self._steps - step - 1)
        line = (
            f"train: step {step + 1:,} of {self._steps:,}  loss {loss:.4f}  {tokens_per_second:,.0f} tokens/s  "
            f"{_duration(left)} left"
        )
        ends = step + 1 == self._steps
        self._stream.write(f"\r\x1b[K{line}" + ("\n" if ends else "") if self._live else f"{line}\n")
        self._stream.flush()

    def say(self, line: str) -> None:
        if self._stream is not None:
            self._stream.write(f"\r\x1b[Ktrain: {line}\n" if self._live else f"train: {line}\n")
            self._stream.flush()


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 7200 else f"{whole // 3600} h {whole % 3600 // 60} min"
