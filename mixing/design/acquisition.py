"""What a run is worth before it is made: variance it removes, improvement it may find, knowledge it brings, a FLOP.

Each function takes a Belief of p places and returns [p], larger is better, a unit of cost. `batch` chooses several runs
one after the other, each as if those before it had come out as expected.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixing.design.belief import Belief
from mixing.observations.points import Floats

Acquisition = Callable[[Belief], Floats]

NODES = np.linspace(-4, 4, 65)
"""Standard deviations at which a knowledge gradient is integrated: within 2e-3 of it, see the tests."""
SHARES = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
REACH = 6.0
"""Places whose mean is this many standard deviations above the best one's are never the best."""


def variance_removed(belief: Belief) -> Floats:
    """Integrated variance reduction: how much a run lowers the variance summed over the feasible set.

    Source: active learning, Cohn (1996). Of RegMix's runs, space filling teaches all losses better (squared error
    .0158, this .0193, random .0190: bench.mixing_design): it is this with nothing assumed of where the law is off.
    """
    return np.asarray((belief.moves()[belief.even] ** 2).sum(axis=0) / belief.cost)


def expected_improvement(belief: Belief) -> Floats:
    """By how much a run is expected to lie below the best predicted mean of the places seen.

    Source: Jones, Schonlau, Welch (1998); the best prediction in place of the best value seen, and the factor for noise
    and for other scales (squared correlation with the target scale), after Huang et al. (2006), "augmented".
    Places away from the target scale stand for the place at it that they tell most of.
    """
    at = np.flatnonzero(belief.target)
    known = at[belief.seen[at]]
    best = belief.mean[known if len(known) else at].min()
    spread = np.sqrt(belief.variance[at])
    gain = _normal_gain(best - belief.mean[at], spread)
    moved = belief.moves()[at] ** 2 / np.maximum(belief.variance[at], 1e-300)[:, None]
    return np.asarray((gain[:, None] * moved).max(axis=0) / belief.cost)


def _normal_gain(lead: Floats, spread: Floats) -> Floats:
    """E max(lead + spread Z, 0)."""
    from scipy.special import ndtr

    wide = np.maximum(spread, 1e-300)
    ratio = lead / wide
    density = np.exp(-np.minimum(ratio**2, 1400) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(np.maximum(np.where(spread > 0, lead * ndtr(ratio) + spread * density, lead), 0))


def knowledge_gradient(belief: Belief) -> Floats:
    """By how much a run is expected to lower the best predicted mean at the target scale.

    Source: Frazier, Powell, Dayanik (2009), by quadrature over the one normal number that a run draws. Unlike expected
    improvement it counts what a run tells of other mixtures, so replicates and cheaper scales need no rule of thumb.
    """
    at = np.flatnonzero(belief.target)
    mean = belief.mean[at]
    moves = belief.moves()[at]
    rivals = mean - mean.min() <= REACH * np.abs(moves).max(axis=1) + 1e-300
    mean, moves = mean[rivals], moves[rivals]
    expected = np.zeros(moves.shape[1])
    for node, share in zip(NODES, SHARES, strict=True):
        expected += share * (mean[:, None] + node * moves).min(axis=0)
    return np.asarray(np.maximum(mean.min() - expected, 0) / belief.cost)


ACQUISITIONS: dict[str, Acquisition] = {
    "variance": variance_removed,
    "expected_improvement": expected_improvement,
    "knowledge_gradient": knowledge_gradient,
}


def batch(belief: Belief, count: int, acquisition: Acquisition) -> tuple[list[int], Belief]:
    """Places of `count` runs made at one time, and the belief as it stands after them."""
    chosen: list[int] = []
    for _ in range(count):
        place = int(np.argmax(acquisition(belief)))
        chosen.append(place)
        belief = belief.measured(place)
    return chosen, belief
