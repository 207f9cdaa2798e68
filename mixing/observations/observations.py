"""What was measured: a row a run (or a checkpoint of one), its mixture and scale, and a value a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mixing.observations.points import Floats, MixingError, Points

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True, eq=False)
class Observations:
    """n rows of k metrics at Points; lower is better for every metric that is optimised as it is.

    runs: the run's name, of each row; rows of one name are checkpoints or evaluations of one run, and are held out
        together whenever something is validated.
    seeds: int64[n], -1 where unknown. flops: [n], cost of the run up to here; NaN where unknown.
    values: [n, k], NaN where a metric was not measured.
    notes: what was left out or mended on the way here, a line each, for whoever reads a report.
    """

    runs: tuple[str, ...]
    points: Points
    seeds: npt.NDArray[np.int64]
    flops: Floats
    metrics: tuple[str, ...]
    values: Floats
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        points: Points,
        metrics: Sequence[str],
        values: Any,
        *,
        runs: Sequence[str] | None = None,
        seeds: Any = -1,
        flops: Any = np.nan,
        notes: Sequence[str] = (),
    ) -> Observations:
        """Observations of arrays. values: [n, k] (or [n] for one metric).

        Raises MixingError where shapes differ, a metric stands twice, or a value is infinite.
        """
        count = len(points)
        table = np.asarray(values, np.float64)
        table = table[:, None] if table.ndim == 1 else table
        if table.shape != (count, len(metrics)):
            raise MixingError(
                f"values: shape {table.shape} for {count} rows and {len(metrics)} metrics; give a row a run"
            )
        twice = [name for name in metrics if list(metrics).count(name) > 1]
        if twice:
            raise MixingError(f"metrics: {twice[0]!r} stands twice; give each metric one column")
        row, column = (found[:1] for found in np.nonzero(np.isinf(table)))
        if len(row):
            told = f"row {row[0] + 1}: {metrics[column[0]]} is infinite"
            raise MixingError(f"values: {told}; give a number, or NaN where it was not measured")
        names = tuple(f"run-{number:05d}" for number in range(count)) if runs is None else tuple(runs)
        if len(names) != count:
            raise MixingError(f"runs: {len(names)} names for {count} rows; give one a row")
        return cls(
            runs=names,
            points=points,
            seeds=np.broadcast_to(np.asarray(seeds, np.int64), (count,)),
            flops=np.broadcast_to(np.asarray(flops, np.float64), (count,)),
            metrics=tuple(metrics),
            values=table,
            notes=tuple(notes),
        )

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def domains(self) -> tuple[str, ...]:
        return self.points.domains

    @property
    def weights(self) -> Floats:
        return self.points.weights

    def rows(self, chosen: Any) -> Observations:
        """Some of the rows: a mask, indices or a slice."""
        return replace(
            self,
            runs=tuple(np.asarray(self.runs, object)[chosen]),
            points=self.points.rows(chosen),
            seeds=self.seeds[chosen],
            flops=self.flops[chosen],
            values=self.values[chosen],
        )

    def only(self, metrics: Sequence[str]) -> Observations:
        """The same rows with these metrics. Raises MixingError where one is not there."""
        unknown = [name for name in metrics if name not in self.metrics]
        if unknown:
            raise MixingError(f"metrics: no {unknown[0]!r}; there are {', '.join(self.metrics)}")
        columns = [self.metrics.index(name) for name in metrics]
        return replace(self, metrics=tuple(metrics), values=self.values[:, columns])

    def aligned(self, domains: Sequence[str]) -> Observations:
        """The same rows with the domains in another order. Raises MixingError where the names differ."""
        return replace(self, points=self.points.aligned(domains))

    def table(self) -> pa.Table:
        """As one tidy Arrow table, a row a run and metric: see mixing.observations.tidy."""
        from mixing.observations.tidy import table

        return table(self)
