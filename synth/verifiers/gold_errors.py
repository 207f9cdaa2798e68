"""Golds that are probably wrong or ambiguous, by the answers on which a teacher's rollouts agree against them.

Two accounts of the same counts are weighed. Of n answers, g agree with the gold, and the most frequent other answer
was given t times:

    gold right:  g of n by a Beta-Binomial (how often the teacher is right), and t the largest group among n - g wrong
                 answers, which agree with each other as Ewens' sampling formula has it (1972; parameter theta: the
                 smaller, the more they agree)
    gold wrong:  that answer is right: t of n by the same Beta-Binomial, and g of the n - t wrong answers hit upon the
                 gold's own error, by a second one

and the share of wrong golds decides before any answer is seen. A teacher that is confidently wrong looks like a wrong
gold: what is flagged is for a second look or to be left out, never to be relabelled unseen.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.verdicts import Check, Outcome

MAX_GROUPS: Final = 24
"""Different answers to an item that are compared with each other; the rarest beyond stay apart."""

Flag = Literal["", "gold_wrong", "gold_ambiguous"]
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class GoldErrors:
    """When a gold is flagged. The numbers are our choice; tests/synth/verifiers/test_gold_errors.py measures them.

    min_rollouts: with an answer each; fewer flag nothing. min_probability: that the gold is wrong. min_majority: of
        the answers, on one that is not the gold. ambiguous_share: of the answers, on the gold and on the most frequent
        other one each, for ambiguous.
    wrong_share: of golds expected to be wrong. right, coincidence: mean and weight (in rollouts) of the two Beta
        distributions. theta: of the wrong answers' agreement. With fit, all but coincidence, of which a table says
        little, are fitted to the table first, if it has min_rows rows; wrong_share never to less than it is here, for
        where the teacher is weak a table cannot tell it.
    """

    min_rollouts: int = Field(default=4, ge=2)
    min_probability: float = Field(default=0.5, gt=0, lt=1)
    min_majority: float = Field(default=0.5, gt=0, le=1)
    ambiguous_share: float = Field(default=0.35, gt=0, le=0.5)
    wrong_share: float = Field(default=0.02, gt=0, lt=0.5)
    right: tuple[float, float] = (0.5, 2.0)
    theta: float = Field(default=2.0, gt=0)
    coincidence: tuple[float, float] = (0.1, 2.0)
    fit: bool = True
    min_rows: int = Field(default=100, ge=1)


@plain_dataclass(frozen=True, kw_only=True)
class Suspicion:
    """Of an item. flag: "" where nothing is wrong with the gold. odds: of a wrong gold against a right one, after the
    answers. group: of the most frequent answer that is not the gold's; shares are of `rollouts` answers."""

    item: str
    flag: Flag
    odds: float
    rollouts: int
    gold_share: float
    majority_share: float
    group: int | None


def suspect_golds(rows: Iterable[Mapping[str, Any]], settings: GoldErrors | None = None) -> list[Suspicion]:
    """A row for each that comes in, in the same order.

    rows: item (id); agrees, a bool for each rollout, whether its answer is right by the gold (None: the verifier
    said neither); groups, an integer for each, the same for the same answer, None for no answer (`grouped` makes
    them). What has no answer, or no verdict, counts for nothing.
    """
    settings = settings or GoldErrors()
    table = list(rows)
    counts = [_counts(row["agrees"], row["groups"]) for row in table]
    numbers = np.array([count[:3] for count in counts], np.float64).reshape(-1, 3)
    fitted = _fitted(numbers, settings) if settings.fit and len(table) >= settings.min_rows else _given(settings)
    odds = np.exp(np.clip(_log_odds(numbers, fitted), -50, 50))
    told = zip(table, counts, odds, strict=True)
    return [_suspicion(str(row["item"]), count, float(at), settings) for row, count, at in told]


def grouped(
    kind: str, answers: Sequence[str | None], options: Mapping[str, Any] | None = None
) -> Generator[Sequence[Check], Any, list[int | None]]:
    """A sub-flow: which answers the kind's verifier takes for the same, as integers. Both ways round must hold."""
    texts = [None if answer is None or not answer.strip() else " ".join(answer.split()) for answer in answers]
    distinct = sorted({text for text in texts if text is not None}, key=lambda text: (-texts.count(text), text))
    pairs = [(one, other) for one, other in combinations(distinct[:MAX_GROUPS], 2)]
    group = {text: at for at, text in enumerate(distinct)}
    if pairs:
        checks = [
            Check(kind=kind, gold=gold, answer=answer, options=dict(options or {}))
            for one, other in pairs
            for gold, answer in ((one, other), (other, one))
        ]
        verdicts = yield checks
        rights = [verdict.outcome is Outcome.RIGHT for verdict in verdicts]
        for (one, other), there, back in zip(pairs, rights[::2], rights[1::2], strict=True):
            if there and back and group[one] != group[other]:
                low, high = sorted((group[one], group[other]))
                group = {text: low if at == high else at for text, at in group.items()}
    return [None if text is None else group[text] for text in texts]


def _counts(agrees: Sequence[bool | None], groups: Sequence[int | None]) -> tuple[int, int, int, int | None]:
    """Answers, those that agree with the gold, those of the most frequent other group, and that group."""
    gold, others = 0, dict[int, int]()
    for agree, group in zip(agrees, groups, strict=True):
        if agree is None or group is None:
            continue
        if agree:
            gold += 1
        else:
            others[group] = others.get(group, 0) + 1
    top = min(others, key=lambda group: (-others[group], group)) if others else None
    return gold + sum(others.values()), gold, others[top] if top is not None else 0, top


@plain_dataclass(frozen=True, kw_only=True)
class _Model:
    wrong_share: float
    right: tuple[float, float]
    theta: float
    coincidence: tuple[float, float]


def _given(settings: GoldErrors) -> _Model:
    return _Model(
        wrong_share=settings.wrong_share,
        right=settings.right,
        theta=settings.theta,
        coincidence=settings.coincidence,
    )


def _log_odds(numbers: Numbers, model: _Model) -> Numbers:
    right, wrong = _accounts(numbers, model)
    return wrong - right


def _accounts(numbers: Numbers, model: _Model) -> tuple[Numbers, Numbers]:
    """Log-probabilities of the counts under both accounts, with the share of wrong golds in them."""
    total, gold, top = numbers.T
    right = _log_beta_binomial(gold, total, model.right) + _log_largest(top, total - gold, model.theta)
    wrong = _log_beta_binomial(top, total, model.right) + _log_beta_binomial(gold, total - top, model.coincidence)
    return right + np.log1p(-model.wrong_share), wrong + np.log(model.wrong_share)


def _log_beta_binomial(count: Numbers, total: Numbers, shape: tuple[float, float]) -> Numbers:
    from scipy.special import betaln

    alpha, beta = shape[0] * shape[1], (1 - shape[0]) * shape[1]
    choices = -np.log1p(total) - betaln(total - count + 1, count + 1)
    made: Numbers = choices + betaln(count + alpha, total - count + beta) - betaln(alpha, beta)
    return made


def _log_largest(largest: Numbers, total: Numbers, theta: float) -> Numbers:
    """Log-probability that the largest of the groups into which Ewens' formula puts `total` things has so many."""
    table = _largest_table(int(total.max(initial=0.0)), theta)
    chances: Numbers = table[total.astype(np.int64), largest.astype(np.int64)]
    return chances


@lru_cache(maxsize=64)
def _largest_table(most: int, theta: float) -> Numbers:
    """[total, largest] of the log-probabilities, of totals up to `most`.

    With groups of at most k, the weight of `total` things is the coefficient of x^total in exp(theta sum_{j<=k}
    x^j / j), by m a_m = theta (a_(m-1) + ... + a_(m-k)); the probability of a largest group of at most k is that weight
    over the one without a bound.
    """
    weights = np.zeros((most + 1, most + 1))  # [k, total]
    weights[:, 0] = 1.0
    for total in range(1, most + 1):
        # Weights grow as total^(theta - 1) at most: far from overflow for the thousands of rollouts that there may be.
        below = np.cumsum(weights[:, :total][:, ::-1], axis=1)
        reach = np.minimum(np.arange(most + 1), total)
        weights[:, total] = np.where(reach > 0, theta * below[np.arange(most + 1), reach - 1] / total, 0.0)
    at_most = weights / weights[most]
    chances = np.diff(at_most, axis=0, prepend=0.0).T
    with np.errstate(divide="ignore"):
        logs: Numbers = np.log(np.maximum(chances, 1e-300))
    return logs


_MEANS: Final = tuple(np.linspace(0.05, 0.95, 19))
_WEIGHTS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_SHARES: Final = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2)
_THETAS: Final = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)
SWEEPS: Final = 3


def _fitted(numbers: Numbers, settings: GoldErrors) -> _Model:
    """The likeliest model on a grid, one part after another, from the settings' own."""
    unique, often = np.unique(numbers, axis=0, return_counts=True)
    shapes = [(float(mean), weight) for mean in _MEANS for weight in _WEIGHTS]
    model = _given(settings)

    def likelihood(tried: _Model) -> float:
        return float(np.sum(often * np.logaddexp(*_accounts(unique, tried))))

    for _ in range(SWEEPS):
        for trials in (
            [replace(model, right=shape) for shape in shapes],
            [replace(model, theta=theta) for theta in _THETAS],
            [replace(model, wrong_share=share) for share in _SHARES if share >= settings.wrong_share],
        ):
            model = max([model, *trials], key=likelihood)
    return model


def _suspicion(item: str, count: tuple[int, int, int, int | None], odds: float, settings: GoldErrors) -> Suspicion:
    total, gold, top, group = count
    gold_share, majority = (gold / total, top / total) if total else (0.0, 0.0)
    flag: Flag = ""
    if total >= settings.min_rollouts:
        probability = odds / (1 + odds)
        if probability >= settings.min_probability and majority >= settings.min_majority:
            flag = "gold_wrong"
        elif min(gold_share, majority) >= settings.ambiguous_share:
            flag = "gold_ambiguous"
    return Suspicion(
        item=item, flag=flag, odds=odds, rollouts=total, gold_share=gold_share, majority_share=majority, group=group
    )
