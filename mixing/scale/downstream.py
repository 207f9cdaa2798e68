"""A law of downstream metrics: losses by a law, metrics by links, so that a mixture can be sought for what counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError, Points
from mixing.scale.links import Link, fit_link


@dataclass(frozen=True, kw_only=True, eq=False)
class Downstream(Law):
    """Metrics of links, after the law's own losses. All are lower-better: a rising metric is told as "1 - accuracy".

    law: of losses. links: one a downstream metric.
    """

    name: ClassVar[str] = "downstream"
    equation: ClassVar[str] = "y = low + height c(sum_j a_j L_j(w)), a_j >= 0"
    source: ClassVar[str] = (
        "Bhagia et al. 2024, arXiv:2412.04403: loss to accuracy by a sigmoid; here of several losses"
    )

    domains: tuple[str, ...]
    metrics: tuple[str, ...]
    law: Law
    links: tuple[Link, ...]

    @classmethod
    def of(cls, law: Law, links: Sequence[Link] | Link) -> Self:
        """Raises MixingError where a link takes a loss that the law does not tell, or two links tell one metric."""
        held = (links,) if isinstance(links, Link) else tuple(links)
        names = tuple(told_as(link) for link in held)
        for link in held:
            for loss in link.losses:
                if loss not in law.metrics:
                    raise MixingError(
                        f"downstream: {link.metric} takes {loss!r}; the law tells {', '.join(law.metrics)}"
                    )
        twice = [name for name in names if [*names, *law.metrics].count(name) > 1]
        if twice:
            raise MixingError(f"downstream: {twice[0]!r} is told twice; give each metric one link")
        return cls(domains=law.domains, metrics=(*law.metrics, *names), law=law, links=held)

    @classmethod
    def fit(
        cls, observations: Observations, *, seed: int = 0, metrics: Mapping[str, Sequence[str]] | None = None
    ) -> Self:
        """Fit the losses' law by `mixing.fitting.fit`, and a link for each metric of {metric: losses}; accuracies all.

        Raises MixingError without metrics, and where a metric is not told by its losses.
        """
        from mixing.fitting import fit

        if not metrics:
            raise MixingError("downstream: which metrics follow from which losses is not said; give {metric: losses}")
        links = [fit_link(observations, metric, losses, seed=seed) for metric, losses in metrics.items()]
        inner = fit(observations.only([name for name in observations.metrics if name not in metrics]), seed=seed)
        return cls.of(inner, links)

    def mean(self, points: Points) -> Floats:
        losses = self.law.mean(points)
        told = [link.value(losses[:, self._columns(link)]) for link in self.links]
        return np.column_stack(
            [losses, *(1 - value if link.rising else value for link, value in zip(self.links, told, strict=True))]
        )

    def gradient(self, points: Points) -> Floats:
        losses, inner = self.law.mean(points), self.law.gradient(points)
        told = [inner]
        for link in self.links:
            columns = self._columns(link)
            slope = link.slopes(losses[:, columns]) * (-1 if link.rising else 1)
            told.append(np.einsum("np,npm->nm", slope, inner[:, columns])[:, None])
        return np.concatenate(told, axis=1)

    @property
    def convex(self) -> npt.NDArray[np.bool_]:
        """The law's losses as they are; a sigmoid bends both ways, a power with an exponent above 1 may not."""
        return np.concatenate([self.law.convex, np.zeros(len(self.links), np.bool_)])

    def deviation(self, points: Points) -> Floats | None:
        """[n, k]: of a new run: the link's own, and the losses' through its slopes, as if those erred together.

        NaN for losses of a law without deviations.
        """
        losses, inner = self.law.mean(points), self.law.deviation(points)
        told = [np.full_like(losses, np.nan) if inner is None else inner]
        for link in self.links:
            columns = self._columns(link)
            variance = link.variance(losses[:, columns])
            if inner is not None:
                variance = variance + (np.abs(link.slopes(losses[:, columns])) * inner[:, columns]).sum(axis=1) ** 2
            told.append(np.sqrt(variance)[:, None])
        return np.hstack(told)

    def told(self) -> dict[str, Any]:
        links = {
            link.metric: {
                "shape": link.curve.shape,
                "losses": dict(zip(link.losses, map(float, link.curve.theta[3:]), strict=True)),
                "explained": link.explained,
                "rank": link.rank,
                "deviation": link.deviation,
                "runs": link.runs,
                "warnings": list(link.warnings),
            }
            for link in self.links
        }
        return {"law": self.law.name, "links": links, **self.law.told()}

    def _columns(self, link: Link) -> list[int]:
        return [self.law.metrics.index(loss) for loss in link.losses]


def told_as(link: Link) -> str:
    """The name of a link's metric in the law: what is minimised."""
    return f"1 - {link.metric}" if link.rising else link.metric
