"""Learning-rate schedules as closed forms of the step: nothing to store, nothing to replay.

Update s (from 0) of a run of S updates uses learning_rate * factor(s). Both schedules warm up linearly over W updates,
(s + 1) / W, so that no update is wasted at a rate of 0.

wsd      1 until the decay, which takes the last D = decay_share * S updates: f(r) with r = (s - (S - D)) / D.
         Source: Hu et al. 2024, arXiv:2404.06395 (10% of the tokens are enough to decay, 2.5% are not).
cosine   (1 + cos(pi r)) / 2 over all updates after the warm-up. Source: Loshchilov and Hutter 2017, arXiv:1608.03983.

Shapes of the decay: linear 1 - r; cosine (1 + cos(pi r)) / 2; minus_sqrt 1 - sqrt(r). Source of the last, and that it
is generally the best: Haegele et al. 2024, arXiv:2405.18392.
"""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["wsd", "cosine"]
DecayShape = Literal["linear", "cosine", "minus_sqrt"]


def rate_factor(
    step: int,
    *,
    steps: int,
    warmup_steps: int,
    schedule: Schedule = "wsd",
    decay_share: float = 0.1,
    decay_shape: DecayShape = "minus_sqrt",
    final_share: float = 0.0,
) -> float:
    """What update `step` multiplies the learning rate by, in (0, 1] for final_share = 0 and step < steps.

    steps: updates of the whole run. final_share: the factor that step = steps would have, the schedule's floor.
    """
    warmup = min(1.0, (step + 1) / warmup_steps) if warmup_steps else 1.0
    if schedule == "cosine":
        start, shape = min(warmup_steps, steps), "cosine"
    else:
        start, shape = steps - decay_steps(steps, decay_share), decay_shape
    if step < start:
        return warmup
    part = min(1.0, (step - start) / (steps - start)) if steps > start else 1.0
    return min(warmup, final_share + (1.0 - final_share) * _decay(shape, part))


def decay_steps(steps: int, decay_share: float) -> int:
    """Updates of the decay at the end of a WSD run: the nearest whole number, half up."""
    return math.floor(steps * decay_share + 0.5)


def _decay(shape: str, part: float) -> float:
    if shape == "linear":
        return 1.0 - part
    if shape == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * part))
    return 1.0 - math.sqrt(part)
