"""A run in phases, each with its own mixture, whose token-weighted total is the optimum exactly.

Which phase a domain's tokens go to is a transport problem: rows are phases with their shares of the run, columns are
domains with their weights in the total. Of all tables with these sums the one is taken that is nearest (in
Kullback-Leibler divergence) to a wish: a domain brought forward r-fold is r times as dense in the last phase as in the
first, against the others, rising geometrically between. Columns hold exactly by the table's form; rows by Newton steps
on the convex dual, which has one unknown a phase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixing.grids.grid import MARK, Grid
from mixing.observations.points import Floats, MixingError, by_name, simplex_rows

MOST_RATIO = 1e4
"""As dense as this is "all of it in the last phase, as far as there is room"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curriculum:
    """Phases of a run over m domains. tokens: [phases, m], each phase's tokens of each domain as shares of the run.

    All are 0 or more and sum to 1.
    """

    domains: tuple[str, ...]
    tokens: Floats

    @property
    def shares(self) -> Floats:
        """[phases] share of the run's tokens."""
        return np.asarray(self.tokens.sum(axis=1))

    @property
    def weights(self) -> Floats:
        """[phases, m] mixture of each phase; rows sum to 1."""
        return np.asarray(self.tokens / self.shares[:, None])

    @property
    def total(self) -> Floats:
        """[m] mixture of the whole run."""
        return np.asarray(self.tokens.sum(axis=0))

    @cached_property
    def phases(self) -> tuple[dict[str, Any], ...]:
        """Plain values: {"share": of the run's tokens, "weights": {domain: share of the phase's}} each."""
        pairs = zip(self.shares.tolist(), self.weights.tolist(), strict=True)
        return tuple({"share": share, "weights": dict(zip(self.domains, row, strict=True))} for share, row in pairs)

    @classmethod
    def of(cls, phases: Sequence[Mapping[str, Any]]) -> Curriculum:
        """Of plain values, as `phases` has them. Raises MixingError where shares or weights do not sum to 1."""
        domains = tuple(dict.fromkeys(name for phase in phases for name in phase["weights"]))
        shares = _shares([phase["share"] for phase in phases])
        rows = np.stack([by_name(domains, phase["weights"], where="weights", missing=0.0) for phase in phases])
        return cls(domains=domains, tokens=simplex_rows(domains, rows, "phases") * shares[:, None])

    @cached_property
    def grid(self) -> Grid:
        """Domains x phases, as domains: web@phase1. Runs with phases are points of this grid, and laws fit them."""
        names = [f"{name}{MARK}phase{number}" for number in range(1, len(self.tokens) + 1) for name in self.domains]
        return Grid.parse(names)

    @property
    def cells(self) -> dict[str, float]:
        """{web@phase1: its share of the run's tokens}; they sum to 1."""
        return dict(zip(self.grid.names, self.tokens.reshape(-1).tolist(), strict=True))

    @classmethod
    def of_cells(cls, cells: Mapping[str, float]) -> Curriculum:
        """Back from the weights of a grid of phases, such as an optimum over it; a cell that is left out is 0.

        Raises MixingError where a name is of no phase, weights do not sum to 1, or a phase has none.
        """
        grid = Grid.parse(tuple(cells))
        whole = [name for name, level in grid.cells if level is None or not level.removeprefix("phase").isdigit()]
        if whole:
            raise MixingError(f"phases: {whole[0]!r} is of no phase; name cells DOMAIN{MARK}phase1 and so on")
        values = simplex_rows(grid.names, np.array([list(cells.values())], np.float64), "phases")[0]
        found = np.zeros((max(int(str(level)[5:]) for _, level in grid.cells), len(grid.domains)))
        for (name, level), value in zip(grid.cells, values, strict=True):
            found[int(str(level)[5:]) - 1, grid.domains.index(name)] = value
        _shares(found.sum(axis=1).tolist())
        return cls(domains=grid.domains, tokens=found)

    def groups(self) -> dict[str, dict[str, Any]]:
        """Each phase's share as a constraint on the grid's cells, in the form of Constraints.groups."""
        told = {}
        for number, share in enumerate(self.shares.tolist(), 1):
            level = f"phase{number}"
            names = tuple(f"{name}{MARK}{level}" for name in self.domains)
            told[level] = {"domains": names, "floor": share, "ceiling": share}
        return told

    def in_steps(self, steps: int) -> tuple[Curriculum, tuple[int, ...]]:
        """The nearest curriculum whose phases are whole steps, with the same total; and each phase's first step.

        Raises MixingError where a phase is shorter than a step.
        """
        ends = np.round(np.cumsum(self.shares) * steps).astype(int)
        ends[-1] = steps
        lengths = np.diff(ends, prepend=0)
        if (lengths < 1).any():
            number = int(np.flatnonzero(lengths < 1)[0]) + 1
            raise MixingError(f"phases: phase {number} of a run of {steps} steps is shorter than one; train longer")
        # Densities against the total; a domain that a phase lacks may enter it, where rounding leaves no other way.
        densities = self.weights / np.where(self.total > 0, self.total, 1)
        tokens = _transport(self.total, lengths / steps, np.maximum(densities, 1 / MOST_RATIO))
        return Curriculum(domains=self.domains, tokens=tokens), tuple((ends - lengths).tolist())

    def changes(self, steps: int) -> dict[str, Any]:
        """What train's Pretrain takes: {"weights": the first phase's, "changes": [{"at_step": n, "weights": ...}]}.

        For a run of `steps` steps of one size; phases are solved again for whole steps, so that the total stays exact.
        """
        whole, begins = self.in_steps(steps)
        first, *later = (phase["weights"] for phase in whole.phases)
        changes = [{"at_step": step, "weights": weights} for step, weights in zip(begins[1:], later, strict=True)]
        return {"weights": first, "changes": changes}


def curriculum(
    mixture: Mapping[str, float],
    shares: Sequence[float],
    forward: Mapping[str, float] | None = None,
) -> Curriculum:
    """Phases whose total is `mixture`, with some domains brought forward to the last of them.

    mixture: {domain: weight}, sum 1. shares: of the run's tokens, phase by phase, sum 1; such as (0.9, 0.1) for a last
        phase while the learning rate decays.
    forward: {domain: ratio} of how dense a domain is in the last phase against the first, compared with the others; 1
        or left out is even, below 1 holds back for the first phase. From 1e4 on: all of it, as far as there is room.

    Ratios are odds between domains: one that is most of the mixture stays near its weight whatever is asked.
    Raises MixingError where sums are not 1, a name is unknown, or a ratio is not above 0.
    """
    domains = tuple(mixture)
    total = simplex_rows(domains, np.array([list(mixture.values())], np.float64), "mixture")[0]
    lengths = _shares(shares)
    ratios = by_name(domains, forward or {}, where="forward", missing=1.0)
    if not (ratios > 0).all():
        at = int(np.flatnonzero(~(ratios > 0))[0])
        raise MixingError(f"forward: {domains[at]} has {ratios[at]}; give a ratio above 0, 1 for none")
    ratios = np.clip(ratios, 1 / MOST_RATIO, MOST_RATIO)
    times = np.linspace(0, 1, len(lengths)) if len(lengths) > 1 else np.zeros(1)
    wish = np.exp(times[:, None] * np.log(ratios)[None, :])
    return Curriculum(domains=domains, tokens=_transport(total, lengths, wish))


def _shares(shares: Sequence[float]) -> Floats:
    told = np.asarray(shares, np.float64)
    if told.ndim != 1 or not len(told) or not (told > 0).all() or abs(told.sum() - 1) > 1e-6:
        raise MixingError(f"phases: shares {list(shares)}; give each phase a share above 0, sum 1")
    return np.asarray(told / told.sum())


def _transport(total: Floats, shares: Floats, wish: Floats) -> Floats:
    """[p, m] with column sums `total` and row sums `shares`, nearest in divergence to `wish` ([p, m], densities).

    With table = total * softmax_p(log wish + u) the columns hold whatever u is, and u minimises the convex dual
    sum_j total_j logsumexp_p(log wish_pj + u_p) - shares . u. Far from even wishes it is nearly piecewise linear, so
    it is followed from the even wish, whose answer is known, to the one that is asked.
    """
    held = total > 0
    logs, weights, prices = np.log(wish[:, held]), total[held], np.log(shares)
    widest = float(np.ptp(logs)) if logs.size else 0.0
    for part in np.linspace(0, 1, 1 + int(np.ceil(widest)))[1:]:
        prices = _newton(part * logs, weights, shares, prices)
    whole = np.zeros((len(shares), len(total)))
    whole[:, held] = weights * _softmax(logs + prices[:, None])
    return whole


def _newton(logs: Floats, weights: Floats, shares: Floats, prices: Floats) -> Floats:
    """[p] u of the dual, by Newton steps that are damped until they lower how far the rows are off."""
    shared = weights * _softmax(logs + prices[:, None])
    miss = shared.sum(axis=1) - shares
    damping = 1e-12
    for _ in range(100):
        size = float(np.abs(miss / shares).max())
        if size < 1e-15 or damping > 1e6:
            break
        rows = shared.sum(axis=1)
        # In the scale of the shares, so that a phase of a thousandth weighs as much as the others.
        hessian = np.diag(rows) - (shared / weights) @ shared.T
        scaled = hessian / shares[:, None] + damping * np.eye(len(shares))
        tried = prices - np.linalg.solve(scaled, miss / shares)
        found = weights * _softmax(logs + tried[:, None])
        off = found.sum(axis=1) - shares
        if np.abs(off / shares).max() < size:
            prices, shared, miss, damping = tried - tried.mean(), found, off, max(damping / 10, 1e-12)
        else:
            damping *= 10
    return prices


def _softmax(logs: Floats) -> Floats:
    """[p, m], columns sum to 1."""
    parts = np.exp(logs - logs.max(axis=0))
    return np.asarray(parts / parts.sum(axis=0))
