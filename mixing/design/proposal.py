"""The next runs: which mixtures, at which size, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from mixing.design.acquisition import ACQUISITIONS
from mixing.design.belief import Belief
from mixing.design.candidates import about, once, rounded, sampled
from mixing.design.problem import SAME_WEIGHT, Problem, Scale
from mixing.design.space_filling import first_runs
from mixing.design.surrogate import Surrogate
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.optimum.constraints import Constraints
from mixing.single_thread import single_threaded

if TYPE_CHECKING:
    import pyarrow as pa

    from mixing.optimum.objective import Objective

Mask = npt.NDArray[np.bool_]
Method = Literal["auto", "space_filling", "variance", "expected_improvement", "knowledge_gradient"]

FEWEST_FIRST = 12
"""Mixtures that fill space before a law is trusted with what comes next, and one more than there are domains."""
TEACHING = 0.125
"""Share of a batch that goes to variance, the rest going to the knowledge gradient. In simulated worlds (seeds that no
test has) 0 and .25 came to the same; one run of eight guards against a law that is wrong where nobody looks."""
TIED = 0.15
"""Share of the first runs that are made again at each dearer size."""
EVEN, NEAR = 400, 60
"""Candidates: over the feasible set, and around each of a few good mixtures."""
SPREADS = (0.2, 0.07, 0.02)
"""Of candidates around good mixtures, in sqrt(w), one round of search after another."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pick:
    """A run: its mixture ([m]), the size's name, and why."""

    weights: Floats
    size: str
    why: str


@single_threaded
def propose(
    known: Observations | Sequence[str],
    n: int,
    *,
    law: str | tuple[str, ...] | Law | None = None,
    constraints: Constraints | None = None,
    objective: Objective | None = None,
    method: Method = "auto",
    sizes: Mapping[str, Scale] | None = None,
    costs: Mapping[str, float] | None = None,
    target: Scale | None = None,
    seed: int = 0,
) -> pa.Table:
    """The next n runs, to be made at one time: a column a domain, `why`, and `size` where sizes are given.

    known: the observations so far, or the names of the domains before there are any.
    law: what predicts; None is the average that mixing.fitting.fit chooses. objective: None is the mean of all metrics.
    method: auto fills space for the first runs, then spends an eighth of a batch on what is least known and the rest on
        what may lower the best loss most; others stand for themselves.
    sizes: name -> (parameters, tokens) of the runs that can be made; costs: name -> cost, 6 N D where not told.
        target: (parameters, tokens) that the mixture is for; None is the dearest size. What a run is worth is counted
        a unit of cost.

    Same runs whatever the order of domains and rows. A run whose objective is unknown (NaN) is left out.
    Raises MixingError where names, numbers or constraints do not fit.
    """
    if method not in get_args(Method):
        raise MixingError(f"method: no {method!r}; there are {', '.join(get_args(Method))}")
    if n < 1:
        raise MixingError(f"n: {n} runs; propose at least 1")
    problem = Problem.of(
        known, constraints=constraints, objective=objective, sizes=sizes, costs=costs, target=target, seed=seed
    )
    order = known.domains if isinstance(known, Observations) else tuple(known)
    return _table(problem, picks(problem, n, law=law, method=method), order, with_size=sizes is not None)


def picks(problem: Problem, n: int, *, law: str | tuple[str, ...] | Law | None, method: Method) -> list[Pick]:
    """The runs as they are chosen, one after the other."""
    if method == "space_filling" or problem.observations is None or (method == "auto" and first_lacking(problem) > 0):
        return filling(problem, n)
    believed = problem.surrogate(law)
    if believed.discrepancy.nothing:
        return filling(problem, n)
    names: list[str] = [method] * n
    if method == "auto":
        teaching = round(TEACHING * n)
        names = ["variance"] * teaching + ["knowledge_gradient"] * (n - teaching)
    return chosen(problem, Places.of(problem, believed), names)


def first_lacking(problem: Problem) -> int:
    """How many mixtures are still to be measured before a law is trusted with what comes next; 0 or less when none."""
    return max(FEWEST_FIRST, len(problem.domains) + 1) - len(problem.mixtures)


def filling(problem: Problem, n: int) -> list[Pick]:
    """Runs that fill space, at the cheapest size; a few of them again at each other size, which ties sizes together."""
    cheapest, *dearer = sorted(problem.sizes, key=lambda name: problem.sizes[name][1])
    again = [(size, row) for row in range(max(1, round(TIED * n))) for size in dearer][: n // 2]
    mixtures = first_runs(problem.polytope, problem.natural, n - len(again), problem.mixtures, problem.seed)
    whys = ["tells most of the mixtures no run is near to"] * len(mixtures)
    if not len(problem.mixtures):
        whys[0] = "the natural mixture, the baseline"
    picked = [Pick(weights=row, size=cheapest, why=why) for row, why in zip(mixtures, whys, strict=True)]
    return picked + [Pick(weights=mixtures[row], size=size, why="the same at another size") for size, row in again]


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Where runs can be made, and what is believed there. sizes: [p], each one's size; None where no run can."""

    points: Points
    sizes: tuple[str | None, ...]
    belief: Belief

    @classmethod
    def of(cls, problem: Problem, believed: Surrogate) -> Places:
        """Every candidate at every size, and at the target scale."""
        mixtures, even, seen = candidates(problem, believed)
        scales: list[tuple[str | None, Scale, float]] = [(name, *told) for name, told in problem.sizes.items()]
        if not any(_same(scale, problem.target) for _, scale, _ in scales):
            scales.append((None, problem.target, np.inf))
        parts = [problem.points(mixtures, scale) for _, scale, _ in scales]
        points = Points(
            domains=problem.domains,
            **{
                field: np.concatenate([getattr(part, field) for part in parts])
                for field in ("weights", "parameters", "tokens", "unique_tokens")
            },
        )
        target = np.repeat([_same(scale, problem.target) for _, scale, _ in scales], len(mixtures))
        belief = believed.belief(
            points,
            cost=np.repeat([cost for *_, cost in scales], len(mixtures)),
            target=target,
            even=np.tile(even, len(scales)) & target,
            seen=np.tile(seen, len(scales)),
        )
        return cls(points=points, sizes=tuple(name for name, *_ in scales for _ in mixtures), belief=belief)


def _same(one: Scale, other: Scale) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, equal_nan=True))


def candidates(problem: Problem, believed: Surrogate) -> tuple[Floats, Mask, Mask]:
    """Mixtures [c, m] that runs may be made of; which of them stand for the whole feasible set; which were measured.

    Around the best of them by the law's mean more are drawn, nearer each time: the last ones are the law's optimum.
    """
    mixtures = problem.mixtures
    mixtures = mixtures[problem.polytope.contains(mixtures, SAME_WEIGHT)] if len(mixtures) else mixtures
    even = sampled(problem.polytope, problem.natural, max(EVEN // len(problem.sizes), 100), problem.seed)
    pool = np.concatenate([mixtures, even])
    for number, spread in enumerate(SPREADS):
        means = believed.mean(problem.points(pool, problem.target))
        good = np.argsort(means, kind="stable")[:3]
        near = [about(problem.polytope, pool[row], spread, NEAR, problem.seed + 7 * number + 1) for row in good]
        pool = np.concatenate([pool, *near])
    pool = once(pool)
    seen = np.arange(len(pool)) < len(mixtures)
    return pool, (np.arange(len(pool)) < len(mixtures) + len(even)) & ~seen, seen


def chosen(problem: Problem, places: Places, names: Sequence[str]) -> list[Pick]:
    """A run of each acquisition named, each as if those before it had come out as expected."""
    belief, taken = places.belief, set[int]()
    found = []
    for name in names:
        worth = ACQUISITIONS[name](belief)
        place = int(np.argmax(worth))
        size = places.sizes[place]
        assert size is not None
        again = place in taken or _measured(problem, places.points, place)
        found.append(Pick(weights=places.points.weights[place], size=size, why=_why(name, belief, place, worth, again)))
        taken.add(place)
        belief = belief.measured(place)
    return found


def _why(name: str, belief: Belief, place: int, worth: Floats, again: bool) -> str:
    start = "replicate: " if again else ""
    if name == "variance":
        share = float(worth[place] * belief.cost[place] / max(belief.variance[belief.even].sum(), 1e-300))
        return f"{start}removes {share:.1%} of what is not known of the loss (variance)"
    gain = float(worth[place] * belief.cost[place])
    return f"{start}expected to lower the best loss by {gain:.2g} ({name.replace('_', ' ')})"


def _measured(problem: Problem, points: Points, place: int) -> bool:
    assert problem.observations is not None
    there = problem.observations.points
    same = np.abs(there.weights - points.weights[place]).max(axis=1) < SAME_WEIGHT
    scale = np.isclose(there.parameters, points.parameters[place], equal_nan=True)
    return bool((same & scale & np.isclose(there.tokens, points.tokens[place], equal_nan=True)).any())


def _table(problem: Problem, runs: Sequence[Pick], order: Sequence[str], *, with_size: bool) -> pa.Table:
    """In the user's order of domains; new mixtures in steps of .0001 where constraints allow."""
    import pyarrow as pa

    weights = np.array([run.weights for run in runs])
    old = (np.abs(weights[:, None] - problem.mixtures[None]).max(axis=2) < SAME_WEIGHT).any(axis=1)
    weights = np.where(old[:, None], weights, rounded(problem.polytope, weights))
    columns = {name: pa.array(weights[:, problem.domains.index(name)]) for name in order}
    columns["why"] = pa.array([run.why for run in runs], pa.string())
    if with_size:
        columns["size"] = pa.array([run.size for run in runs], pa.string())
    return pa.table(columns)
