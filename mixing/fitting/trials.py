"""Laws tried on the same rows and folds: each fitted to all, and what it told of rows that it had not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mixing.laws import LAWS, law_class
from mixing.laws.law import Law
from mixing.observations.observations import Observations
from mixing.observations.points import Floats, MixingError

FIXED_SCALE = ("shared_power", "parts_power", "gaussian_process", "additive_power", "exponential", "linear")
"""The laws of one scale that are tried as a rule; lightgbm never won on RegMix at up to 512 runs: on request."""

OF_SCALE = ("joint_shared_power", "joint_power", "joint_additive", "effective_tokens", "chinchilla", "repetition")
"""The laws of several scales that are tried as a rule; a Gaussian process of scale knows nothing beyond the largest."""

SCALE_DIGITS = 3
"""log N, log D that agree to so many decimals are one scale."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """law: fitted to all rows. means, deviations: [n, k], held out; deviations None where the law has none."""

    law: Law
    means: Floats
    deviations: Floats | None


def law_of(name: str) -> type[Law]:
    """As `mixing.laws.law_class`, and `constant`."""
    if name == "constant":
        from mixing.fitting.constant import Constant

        return Constant
    return law_class(name)


def candidates(law: str | tuple[str, ...], observations: Observations) -> tuple[str, ...]:
    """Names of the laws to try. Raises MixingError where one is unknown or does not go with the observations."""
    several = scales(observations) > 1
    if law == "auto":
        if not several:
            return (*(name for name in FIXED_SCALE if name in LAWS), "constant")
        return (*(name for name in OF_SCALE if name in LAWS), "constant")
    names = (law,) if isinstance(law, str) else tuple(law)
    if not names:
        raise MixingError("law: none; give 'auto', a name or several")
    for name in names:
        law_of(name)  # one that is unknown is told, not left out
        if several and not law_of(name).uses_scale and name != "constant":
            joint = ", ".join(other for other in LAWS if law_class(other).uses_scale) or "none"
            raise MixingError(
                f"law: {name} is of one scale and the runs are of {scales(observations)}; give it runs of one N and D, "
                f"or take a joint law ({joint})"
            )
    return names


def scales(observations: Observations) -> int:
    """How many different (N, D) the rows have; where unknown they are one."""
    points = observations.points
    logs = np.log(np.column_stack([points.parameters, points.tokens]))
    return len(np.unique(np.nan_to_num(np.round(logs, SCALE_DIGITS), nan=0.0), axis=0)) if len(points) else 0


def tried(
    names: tuple[str, ...], observations: Observations, folds: npt.NDArray[np.int64], *, seed: int, workers: int
) -> dict[str, Trial | str]:
    """By name, the trial, or the reason why there is none. The same for any number of workers (processes)."""
    if workers <= 1 or len(names) == 1:
        return {name: _tried(name, observations, folds, seed) for name in names}
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    with ProcessPoolExecutor(min(workers, len(names)), mp_context=get_context("forkserver")) as pool:
        futures = {name: pool.submit(_tried, name, observations, folds, seed) for name in names}
        try:
            return {name: future.result() for name, future in futures.items()}
        except BrokenProcessPool as broken:
            raise MixingError(
                "workers: a process died; a script that asks for several needs `if __name__ == '__main__':` around all "
                "that it does (or fit with one: all laws of 512 runs take half a minute)"
            ) from broken


def _tried(name: str, observations: Observations, folds: npt.NDArray[np.int64], seed: int) -> Trial | str:
    try:
        law = law_of(name).fit(observations, seed=seed)
        if folds.max(initial=0) == 0:
            return Trial(law=law, means=np.full(observations.values.shape, np.nan), deviations=None)
        means, deviations = law.held_out(observations, folds, seed=seed)
    except MixingError as reason:
        return str(reason)
    if not np.isfinite(means[np.isfinite(observations.values)]).all():
        return f"{name}: predictions of held-out runs diverged"
    return Trial(law=law, means=means, deviations=deviations)
