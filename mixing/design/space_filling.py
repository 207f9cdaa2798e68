"""First runs: mixtures spread over the feasible set, before anything is known of the losses.

Measured on RegMix (pool of 512 runs, 24 -> 64): runs far from each other in sqrt(w) teach the surface better than
random ones (mean Spearman .9819 against .9795). The square root makes small shares count: a domain of .001 and one of
.01 are further apart than .50 and .51, as they are in loss.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mixing.design.candidates import sampled
from mixing.observations.points import Floats
from mixing.optimum.polytope import Polytope


def first_runs(polytope: Polytope, natural: Floats, count: int, taken: Floats, seed: int) -> Floats:
    """[count, m]: the natural mixture where no run has it yet, then mixtures far from all the others.

    natural: [m]. taken: [t, m], runs that are there already.
    """
    pool = sampled(polytope, natural, max(1000, 20 * count), seed)
    # The natural mixture comes first in the pool: it is the baseline that everything is compared with.
    start = pool[:1] if not len(taken) else pool[:0]
    seen = np.concatenate([taken, start])
    chosen = [*range(len(start)), *spread(pool, seen, count - len(start))][:count]
    return np.asarray(pool[chosen])


def spread(pool: Floats, taken: Floats, count: int) -> list[int]:
    """Greedy max-min (Gonzalez 1985): indices of `count` rows of the pool, each furthest from all before it.

    Distance is Euclidean in sqrt(w), Hellinger's up to a constant. With nothing taken, the first is the pool's middle.
    A pool with fewer rows than asked for is gone through again.
    """
    roots = np.sqrt(pool)
    if len(taken):
        nearest = distances(roots, np.sqrt(taken)).min(axis=1)
    else:
        nearest = -np.linalg.norm(roots - roots.mean(axis=0), axis=1)
    chosen: list[int] = []
    while len(chosen) < min(count, len(pool)):
        following = int(np.argmax(nearest))
        apart = distances(roots, roots[following : following + 1])[:, 0]
        nearest = apart if nearest[following] <= 0 and not chosen else np.minimum(nearest, apart)
        nearest[[*chosen, following]] = -1
        chosen.append(following)
    return [chosen[number % len(chosen)] for number in range(count)]


def distances(some: Floats, others: Floats) -> npt.NDArray[np.float64]:
    """[a, b]: Euclidean."""
    squared = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None] - 2 * some @ others.T
    return np.sqrt(np.maximum(squared, 0))
