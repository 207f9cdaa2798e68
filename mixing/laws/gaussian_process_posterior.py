"""A Gaussian process given what was measured of one metric: means, variances, rows left out, rows imagined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from mixing.laws.gaussian_process_evidence import Constants, inverted
from mixing.laws.gaussian_process_warp import Warp
from mixing.laws.kernels import Features
from mixing.observations.points import Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    """features, z: [n], the rows measured, on the warp's scale. inverse: (K + noise I)^-1; pull: inverse @ z."""

    constants: Constants
    warp: Warp
    features: Features
    z: Floats
    inverse: Floats
    pull: Floats

    @classmethod
    def of(cls, constants: Constants, warp: Warp, features: Features, z: Floats) -> Self:
        inverse, _ = inverted(constants.kernel(features, features), constants.noise)
        return cls(constants=constants, warp=warp, features=features, z=z, inverse=inverse, pull=inverse @ z)

    def mean(self, at: Features) -> Floats:
        """[n], of z."""
        return np.asarray(self.constants.kernel(at, self.features) @ self.pull)

    def mean_slopes(self, at: Features) -> tuple[Floats, Floats]:
        """Of the mean of z by the curved and the straight features."""
        return self.constants.kernel.pulled(at, self.features, self.pull)

    def variance(self, at: Features) -> Floats:
        """[n], of z before noise."""
        cross = self.constants.kernel(at, self.features)
        known = np.einsum("ij,ij->i", cross @ self.inverse, cross)
        return np.asarray(np.maximum(self.constants.kernel.variance(at) - known, 0))

    def variance_slopes(self, at: Features) -> tuple[Floats, Floats]:
        """Of the variance of z by the curved and the straight features."""
        kernel = self.constants.kernel
        held = kernel(at, self.features) @ self.inverse
        curved, straight = kernel.pulled(at, self.features, held)
        return -2 * curved, 2 * at.straight * kernel.slopes - 2 * straight

    def covariance(self, at: Features) -> Floats:
        """[n, n], of z before noise."""
        cross = self.constants.kernel(at, self.features)
        found = self.constants.kernel(at, at) - cross @ self.inverse @ cross.T
        return np.asarray((found + found.T) / 2)

    def left_out(self, folds: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance, noise in it, of each row's z given the rows of the other folds [n].

        Of a Gaussian: with P the inverse covariance, z_I given the rest has variance (P_II)^-1 and misses its mean by
        (P_II)^-1 (P z)_I (Rasmussen and Williams 2006, section 5.4.2, of blocks).
        """
        mean, variance = np.empty(len(self.z)), np.empty(len(self.z))
        for fold in np.unique(folds):
            inside = np.flatnonzero(folds == fold)
            block = np.linalg.inv(self.inverse[np.ix_(inside, inside)])
            mean[inside] = self.z[inside] - block @ self.pull[inside]
            variance[inside] = np.diagonal(block)
        return mean, variance

    def conditioned(self, at: Features, z: Floats) -> Process:
        """The same process with more rows measured."""
        return Process.of(self.constants, self.warp, self.features.joined(at), np.concatenate([self.z, z]))
