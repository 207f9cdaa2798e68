"""From small runs to the target: recalibration, choice of law by the largest scale, loss to downstream metric.

recalibrate(law, target)                 the law on a line a metric, from 3 or more runs at the target -> Recalibrated
choose_by_scale(observations)            joint laws averaged by what they tell of the largest size -> ScaleAverage
rank_transfer(small, large)              whether the same mixtures rank alike at two scales, with a warning where not
fit_link(observations, metric, losses)   a downstream metric from losses -> Link; an error where they do not tell it
Downstream.of(law, links)                a law of "1 - accuracy", with gradient, that an optimum can be sought for
"""

from __future__ import annotations

from mixing.scale.downstream import Downstream
from mixing.scale.links import Link, fit_link
from mixing.scale.ranks import RankTransfer, rank_transfer
from mixing.scale.recalibration import Recalibrated, recalibrate
from mixing.scale.scale_choice import ScaleAverage, choose_by_scale

__all__ = [
    "Downstream",
    "Link",
    "RankTransfer",
    "Recalibrated",
    "ScaleAverage",
    "choose_by_scale",
    "fit_link",
    "rank_transfer",
    "recalibrate",
]
