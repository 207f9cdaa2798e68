"""How success is spread over prompts: a hierarchical Beta-Binomial on a grid, read off a histogram of pilot counts.

Source: Shen et al. 2026, arXiv:2609.28560: a prompt's chance of success is Beta(m c, (1 - m) c) with c = (1 - d) / d,
mean m and dispersion d uniform, on 16 x 16 Gauss-Legendre points. Differs from it: prompts may have different numbers
of trials, since what was not verified is no trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

POINTS = 16
"""Of the grid, in each direction: the paper's."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """a, b: parameters of Beta at each grid point, shape (256,); weights: the posterior there. Each answer about
    prompts takes their trials and right ones, arrays of one shape."""

    a: Array
    b: Array
    weights: Array

    def variance(self, trials: Any, right: Any) -> Array:
        """E[p (1 - p)] of each prompt: what one more rollout of it varies by."""

        def inside(a: Array, b: Array) -> Array:
            return a * b / ((a + b) * (a + b + 1))

        return self._of_prompts(trials, right, inside)

    def share(self, trials: Any, right: Any) -> Array:
        """E[p] of each prompt: its share of right ones, drawn toward those of the others."""
        return self._of_prompts(trials, right, lambda a, b: a / (a + b))

    def useful(self, trials: Any, right: Any, more: int, wanted: Any) -> Array:
        """E[min(X, wanted)] of the right ones X among `more` further rollouts of each prompt."""
        import numpy as np

        trials, right, wanted = np.broadcast_arrays(np.asarray(trials), np.asarray(right), np.asarray(wanted))
        total = np.zeros(trials.shape)
        for least in range(1, more + 1):
            # E[min(X, k)] = P(X >= 1) + ... + P(X >= k)
            chance = self._of_prompts(trials, right, lambda a, b, least=least: _at_least(least, more, a, b))
            total += np.where(wanted >= least, chance, 0.0)
        return total

    @property
    def prior(self) -> tuple[float, float]:
        """One Beta for all prompts, of the posterior means of mean and dispersion; for GiveUp.prior."""
        import numpy as np

        mean = float(np.sum(self.weights * self.a / (self.a + self.b)))
        dispersion = float(np.sum(self.weights / (1 + self.a + self.b)))
        sum_ = (1 - dispersion) / dispersion
        return mean * sum_, (1 - mean) * sum_

    @property
    def gain_bound(self) -> float:
        """What the best shares could save of equal ones' variance: 1 - (E sqrt v)^2 / E v of v = p (1 - p)."""
        import numpy as np
        from scipy.special import betaln

        root = np.exp(betaln(self.a + 0.5, self.b + 0.5) - betaln(self.a, self.b))
        whole = self.a * self.b / ((self.a + self.b) * (self.a + self.b + 1))
        return float(1 - np.sum(self.weights * root) ** 2 / np.sum(self.weights * whole))

    def _of_prompts(self, trials: Any, right: Any, inside: Any) -> Array:
        """The posterior mean of a function of each prompt's own Beta; prompts of the same counts share one."""
        import numpy as np

        trials, right = np.broadcast_arrays(np.asarray(trials, np.int64), np.asarray(right, np.int64))
        pairs, where = _groups(trials.ravel(), right.ravel())
        values = np.array([np.sum(self.weights * inside(self.a + k, self.b + n - k)) for n, k in pairs])
        return np.asarray(values[where].reshape(trials.shape), np.float64)


def population_of(trials: Any, right: Any) -> Population:
    """The posterior after so many trials and right ones of each prompt. Raises ValueError where they contradict."""
    import numpy as np
    from scipy.special import betaln, logsumexp

    tried, solved = np.asarray(trials, np.int64), np.asarray(right, np.int64)
    if tried.shape != solved.shape or tried.ndim != 1 or np.any(solved < 0) or np.any(solved > tried):
        raise ValueError("trials, right: give one of each a prompt, none below 0 and no more right than trials")
    nodes, parts = np.polynomial.legendre.leggauss(POINTS)
    mean, dispersion = (axis.ravel() for axis in np.meshgrid((nodes + 1) / 2, (nodes + 1) / 2, indexing="ij"))
    sum_ = (1 - dispersion) / dispersion
    a, b = mean * sum_, (1 - mean) * sum_
    pairs, where = _groups(tried, solved)
    prompts = np.bincount(where, minlength=len(pairs))
    logs = np.log(np.outer(parts, parts).ravel() / 4)
    for (n, k), times in zip(pairs, prompts, strict=True):
        logs += times * (betaln(a + k, b + n - k) - betaln(a, b))
    return Population(a=a, b=b, weights=np.exp(logs - logsumexp(logs)))


def _groups(trials: Any, right: Any) -> tuple[list[tuple[int, int]], Any]:
    """The different pairs of trials and right ones, and which of them each prompt has."""
    import numpy as np

    width = int(trials.max(initial=0)) + 1
    codes, where = np.unique(trials * width + right, return_inverse=True)
    return [(int(code) // width, int(code) % width) for code in codes], where


def _at_least(least: int, more: int, a: Array, b: Array) -> Array:
    """P(X >= least) of a Beta-Binomial."""
    import numpy as np
    from scipy.special import betaln, gammaln

    drawn = np.arange(least, more + 1)[:, None]
    ways = gammaln(more + 1) - gammaln(drawn + 1) - gammaln(more - drawn + 1)
    chance: Array = np.exp(ways + betaln(a + drawn, b + more - drawn) - betaln(a, b)).sum(axis=0)
    return chance
