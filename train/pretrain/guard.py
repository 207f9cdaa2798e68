"""Loss-spike guard: notices that a run has left its course, by statistics that the spike itself cannot move.

A value is judged by its distance from the median of the last good values, in robust standard deviations
(1.4826 * MAD, which is the standard deviation for a normal distribution). The gradient norm is judged by its logarithm,
as its tail is long. Only values above the median count. What is done about a spike is the loop's part
(train.pretrain.loop): restart from a checkpoint before it and skip its batches, as Chowdhery et al. 2022,
arXiv:2204.02311, section 5.1, did.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as settings

NORMAL_MAD = 1.4826
SMALLEST_LOSS_SHARE = 0.01
SMALLEST_LOG_NORM = 0.1


class Diverged(RuntimeError):
    """A run that keeps spiking after the allowed number of rollbacks: one line that says where, and what to try."""


@settings(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class SpikeGuard:
    """When a spike is one, and how often to roll back.

    window_steps: good steps that the median and MAD are taken over; the guard waits until half of them are there.
    threshold: robust standard deviations above the median that make a step suspect. For the deviation of the loss at
        least 1% of its median is taken, for that of the logarithm of the gradient norm at least 0.1: a run that is very
        smooth must not trip over nothing.
    patience_steps: suspect steps in a row that make a spike (one bad batch is what clipping is for). NaN and infinity
        are a spike at once.
    max_rollbacks: spikes a run may have before it stops with an error.
    """

    window_steps: int = Field(default=128, ge=8)
    threshold: float = Field(default=8.0, gt=0)
    patience_steps: int = Field(default=4, ge=1)
    max_rollbacks: int = Field(default=3, ge=0)


@dataclass(frozen=True)
class Spike:
    """Steps first .. last inclusive, to be skipped after a rollback to a checkpoint at or before `first`."""

    first: int
    last: int
    reason: str


class Watch:
    """Judges each step once, in order; its state is a small JSON value and travels with the checkpoints."""

    def __init__(self, guard: SpikeGuard) -> None:
        self.guard = guard
        self._losses: deque[float] = deque(maxlen=guard.window_steps)
        self._norms: deque[float] = deque(maxlen=guard.window_steps)
        self._suspect: list[int] = []
        self._reasons: list[str] = []

    def judge(self, step: int, loss: float, gradient_norm: float) -> Spike | None:
        """The spike that this step completes, or None."""
        reason = self._reason(loss, gradient_norm)
        if reason is None:
            self._suspect, self._reasons = [], []
            self._losses.append(loss)
            self._norms.append(math.log(max(gradient_norm, 1e-30)))
            return None
        self._suspect.append(step)
        self._reasons.append(reason)
        if _finite(loss, gradient_norm) and len(self._suspect) < self.guard.patience_steps:
            return None
        return Spike(self._suspect[0], step, self._reasons[0])

    @property
    def suspect_since(self) -> int | None:
        """The first of the suspect steps that may become a spike."""
        return self._suspect[0] if self._suspect else None

    def forget(self) -> None:
        """Start anew: another mixture or batch size has another loss."""
        self._losses.clear()
        self._norms.clear()
        self._suspect, self._reasons = [], []

    def _reason(self, loss: float, gradient_norm: float) -> str | None:
        if not math.isfinite(loss):
            return f"loss {loss}"
        if not math.isfinite(gradient_norm):
            return f"gradient norm {gradient_norm}"
        if 2 * len(self._losses) < self.guard.window_steps:
            return None
        middle, deviation = _robust(self._losses)
        distance = (loss - middle) / max(deviation, SMALLEST_LOSS_SHARE * abs(middle), 1e-12)
        if distance > self.guard.threshold:
            return f"loss {loss:.4g} against a median of {middle:.4g}"
        middle, deviation = _robust(self._norms)
        distance = (math.log(max(gradient_norm, 1e-30)) - middle) / max(deviation, SMALLEST_LOG_NORM)
        if distance > self.guard.threshold:
            return f"gradient norm {gradient_norm:.4g} against a median of {math.exp(middle):.4g}"
        return None

    def state(self) -> dict[str, Any]:
        return {
            "losses": list(self._losses),
            "log_norms": list(self._norms),
            "suspect": self._suspect,
            "reasons": self._reasons,
        }

    def load(self, state: dict[str, Any]) -> None:
        self.forget()
        self._losses.extend(state["losses"])
        self._norms.extend(state["log_norms"])
        self._suspect, self._reasons = list(state["suspect"]), list(state["reasons"])


def _finite(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _robust(values: deque[float]) -> tuple[float, float]:
    middle = median(values)
    return middle, NORMAL_MAD * median(abs(value - middle) for value in values)
