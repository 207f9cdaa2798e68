"""Two teachers on the same prompts: what they solve, how they vary, and what it costs, with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from synth.errors import SynthError
from synth.rollouts.history import Rollout, counts
from synth.rollouts.intervals import Estimate, bootstrap
from synth.rollouts.passes import difference, majority, pass_all, pass_curve, sharpness

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Histories = Mapping[str, Sequence[Rollout]]
"""Rollouts of each prompt, by its id."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A figure of both teachers, and the first's less the second's; each with its interval."""

    first: Estimate
    second: Estimate
    difference: Estimate


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """prompts: that are compared; left_out: that both have, but one with fewer judged rollouts than k.

    figures, by name: pass@1, pass@k, pass^k, sharpness (S(k), what share of failures more samples mend); majority (its
    commonest answer is right), agreement (share of the commonest answer), different (chance that two replies of a
    prompt give different answers); truncated (share of replies), tokens (of a reply), right (a prompt),
    tokens_per_right, cost_per_right. A figure that a prompt has not (no answers to compare, say) counts as 0 there.
    same: share of prompts for which the commonest answers of both are one.
    """

    prompts: int
    left_out: int
    k: int
    figures: Mapping[str, Compared]
    same: Estimate


def compare(
    first: Histories,
    second: Histories,
    *,
    k: int = 4,
    rollouts: int | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Over the prompts that both have, at least k of whose rollouts are judged.

    rollouts: of each prompt only its first ones count. Needed where a schedule stopped at right answers: what is
    counted after that is biased (see synth.rollouts.passes); None takes all.
    Raises SynthError where no prompt can be compared.
    """
    import numpy as np

    common = sorted(first.keys() & second.keys())
    pairs = [[list(islice(of[name], rollouts)) for of in (first, second)] for name in common]
    kept = [pair for pair in pairs if all(sum(counts(one)) >= k for one in pair)]
    if not kept or k < 2:
        raise SynthError(
            f"compare: {len(kept)} of {len(common)} common prompts have {k} judged rollouts of both teachers; "
            "give more rollouts, or a k of at least 2 that they have"
        )
    sides = [np.array([_columns(pair[side], k) for pair in kept]) for side in (0, 1)]
    width = sides[0].shape[1]
    same = np.array([[_same(*pair)] for pair in kept])

    def figures(means: Array) -> Array:
        one, other = (_figures(means[..., at : at + width], k) for at in (0, width))
        return np.concatenate([one, other, one - other, means[..., -1:]], axis=-1)

    found = bootstrap(np.hstack([*sides, same]), figures, replicates=replicates, seed=seed)
    names, size = _names(k), len(_names(k))
    told = {
        name: Compared(first=found[at], second=found[size + at], difference=found[2 * size + at])
        for at, name in enumerate(names)
    }
    return Comparison(prompts=len(kept), left_out=len(common) - len(kept), k=k, figures=told, same=found[-1])


def _names(k: int) -> tuple[str, ...]:
    return (
        "pass@1", f"pass@{k}", f"pass^{k}", "sharpness", "majority", "agreement", "different", "truncated", "tokens",
        "right", "tokens_per_right", "cost_per_right",
    )  # fmt: skip


def _columns(history: Sequence[Rollout], k: int) -> Array:
    """Of one prompt: its curve, and sums or shares that _figures makes ratios of."""
    import numpy as np

    right, wrong = counts(history)
    _, agreement, majority_right = majority(history) or ("", 0.0, 0.0)
    return np.array([
        *pass_curve(right + wrong, right, k), float(pass_all(right + wrong, right, k)), majority_right, agreement,
        difference(history) or 0.0, sum(one.truncated for one in history), sum(one.tokens for one in history),
        sum(one.cost for one in history), right, len(history),
    ])  # fmt: skip


def _figures(means: Array, k: int) -> Array:
    import numpy as np

    curve = means[..., :k]
    every, majority_right, agreement, different, truncated, tokens, cost, right, asked = np.moveaxis(
        means[..., k:], -1, 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        told = [
            curve[..., 0], curve[..., -1], every, sharpness(curve), majority_right, agreement, different,
            truncated / asked, tokens / asked, right, tokens / right, cost / right,
        ]  # fmt: skip
    return np.stack(told, axis=-1)


def _same(first: Sequence[Rollout], second: Sequence[Rollout]) -> float:
    one, other = majority(first), majority(second)
    return float(one is not None and other is not None and one[0] == other[0])
