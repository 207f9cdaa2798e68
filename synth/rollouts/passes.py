"""pass@k, pass^k, majority, and the headroom that more samples have over one: of a teacher, and of the data kept.

Sources: Chen et al. 2021 (arXiv:2107.03374) for pass@k; Oh et al. 2026 (arXiv:2610.01509) for A(K), S(K) and the
sharpening tax; Yao et al. 2024 (arXiv:2406.12045) for pass^k.

All are unbiased only where the number of rollouts was fixed beforehand. A schedule that stops at the first right
answers makes their share too high: take the rollouts of the first wave there (`first_counts`), or allocation hbn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from synth.rollouts.history import Rollout, counts
from synth.rollouts.intervals import Estimate, bootstrap
from synth.verdicts import Outcome

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def first_counts(histories: Sequence[Sequence[Rollout]], first: int) -> tuple[Array, Array]:
    """Judged rollouts and right ones of each prompt among its first ones."""
    import numpy as np

    found = np.array([counts(islice(history, first)) for history in histories], np.float64).reshape(-1, 2)
    return found.sum(axis=1), found[:, 0]


def pass_curve(trials: Any, right: Any, most: int) -> Array:
    """pass@1 to pass@most of each prompt: 1 - C(n - c, k) / C(n, k). Shape (prompts, most); NaN where n < k."""
    import numpy as np

    n, c = (np.asarray(counted, np.float64)[..., None] for counted in (trials, right))
    drawn = np.arange(most)
    # The chance that each further one of k draws without replacement is wrong, too.
    wrong = np.clip((n - c - drawn) / np.maximum(n - drawn, 1), 0, 1)
    return np.asarray(np.where(drawn < n, 1 - np.cumprod(wrong, axis=-1), np.nan), np.float64)


def pass_at(trials: Any, right: Any, k: int) -> Array:
    """pass@k of each prompt: the chance that one of k rollouts is right; NaN where it has fewer."""
    return _floats(pass_curve(trials, right, k)[..., -1])


def pass_all(trials: Any, right: Any, k: int) -> Array:
    """pass^k of each prompt, C(c, k) / C(n, k): the chance that all of k rollouts are right; NaN where it has fewer."""
    import numpy as np

    n, c = np.asarray(trials, np.float64), np.asarray(right, np.float64)
    return 1 - pass_curve(n, n - c, k)[..., -1]


def kept_curve(trials: Any, right: Any, most: int) -> Array:
    """pass@1 to pass@most of a law that repeats the samples kept of each prompt: 1 - (1 - c / n) ** k. A prompt of
    which nothing was kept is never solved. Shape (prompts, most)."""
    import numpy as np

    n, c = (np.asarray(counted, np.float64)[..., None] for counted in (trials, right))
    return _floats(1 - (1 - c / np.maximum(n, 1)) ** np.arange(1, most + 1))


def headroom(curve: Any) -> Array:
    """A(K) of mean curves (..., K): the sum over k < K of pass@K - pass@k."""
    import numpy as np

    curve = _floats(curve)
    return _floats(np.sum(curve[..., -1:] - curve[..., :-1], axis=-1))


def sharpness(curve: Any) -> Array:
    """S(K) = A(K) / ((K - 1) (1 - pass@1)) of mean curves (..., K), K > 1: what share of its failures more samples
    mend, 0 to 1; 0 where nothing fails. High is a law with variety left; a sharpened one is low."""
    import numpy as np

    curve = _floats(curve)
    whole = (curve.shape[-1] - 1) * (1 - curve[..., 0])
    return _floats(np.where(whole > 1e-12, headroom(curve) / np.maximum(whole, 1e-12), 0.0))


def sharpening_tax(before: Array, after: Array, *, replicates: int = 1000, seed: int = 0) -> tuple[Estimate, ...]:
    """S(K) before, S(K) after, and the tax: the first less the second, with paired intervals over prompts.

    before, after: curves of the same prompts, (prompts, K) each: two teachers' `pass_curve`, or a teacher's and the
    `kept_curve` of what was kept of it. Prompts without a figure in one of them are left out.
    """
    import numpy as np

    if before.shape != after.shape or before.ndim != 2 or before.shape[1] < 2:
        raise ValueError("before, after: curves of the same prompts up to the same K of at least 2; make both alike")
    both = np.hstack([before, after])
    both = both[np.all(np.isfinite(both), axis=1)]
    most = before.shape[1]

    def figures(means: Array) -> Array:
        first, second = sharpness(means[..., :most]), sharpness(means[..., most:])
        return np.stack([first, second, first - second], axis=-1)

    return bootstrap(both, figures, replicates=replicates, seed=seed)


def majority(history: Sequence[Rollout]) -> tuple[str, float, float] | None:
    """The commonest answer of a prompt, its share of the answers, and the chance that it is right: 1 or 0, or where
    several are as common the share of right ones among them. None where there is no answer that was judged."""
    judged = [one for one in history if one.answer and one.outcome in (Outcome.RIGHT, Outcome.WRONG)]
    if not judged:
        return None
    times = Counter(one.answer for one in judged)
    most = max(times.values())
    right = {one.answer for one in judged if one.outcome is Outcome.RIGHT}
    commonest = [answer for answer in times if times[answer] == most]
    share_right = sum(answer in right for answer in commonest) / len(commonest)
    return min(commonest), most / len(judged), share_right


def difference(history: Sequence[Rollout]) -> float | None:
    """The chance that two of a prompt's rollouts give different answers; unbiased for any number of them, from 2."""
    times = Counter(one.answer for one in history if one.answer)
    n = times.total()
    return 1 - sum(m * (m - 1) for m in times.values()) / (n * (n - 1)) if n > 1 else None


def _floats(values: Any) -> Array:
    import numpy as np

    return np.asarray(values, np.float64)
