"""The loss over (parameters, tokens), with repetition where unique tokens are known, and its optima.

Without repetition every optimum is a closed form of train.compute.laws. With repetition, or with inference to pay for,
one variable is left (log N: the tokens follow from the FLOPs or from the loss), and it is searched: a grid over twelve
decades around the closed form, then golden section between the neighbours of the best point. Both are free of random
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from train.compute.laws import INFERENCE_FLOPS, TRAIN_FLOPS, Floats, Law
from train.compute.numbers import BudgetError
from train.compute.repetition import REPEATS_OF_PARAMETERS, Supply, effective

GRID_POINTS: Final = 601
GRID_DECADES: Final = 6.0  # to each side
GOLDEN: Final = 0.6180339887498949


@dataclass(frozen=True)
class Surface:
    """A law and, where unique tokens are limited, the supply that it is trained from.

    With a supply the law holds in N' and D' (arXiv:2305.16264): D' discounts repeats, N' the parameters
    beyond the number for which the unique tokens are compute-optimal. Differs from the paper in one thing: that number
    comes from all unique tokens of the supply, also when a run sees fewer, so that tokens one does not need never
    lower a value.
    """

    law: Law
    supply: Supply | None = None

    def losses(self, parameters: Floats | float, tokens: Floats | float) -> Floats:
        """Nats a token; arrays that broadcast."""
        law = self.law
        size, seen = self.effective_parameters(parameters), self.effective_tokens(tokens)
        with np.errstate(divide="ignore", over="ignore"):
            terms = law.parameter_scale * size**-law.parameter_exponent + law.token_scale * seen**-law.token_exponent
        return law.irreducible + terms

    def loss(self, parameters: float, tokens: float) -> float:
        return float(self.losses(parameters, tokens))

    def effective_tokens(self, tokens: Floats | float) -> Floats:
        return np.asarray(tokens, dtype=np.float64) if self.supply is None else self.supply.effective(tokens)

    def effective_parameters(self, parameters: Floats | float) -> Floats:
        if self.supply is None:
            return np.asarray(parameters, dtype=np.float64)
        return effective(parameters, self.law.optimum_of_tokens(self.supply.total), REPEATS_OF_PARAMETERS)

    def lowest(self) -> float:
        """The loss that no compute gets below."""
        if self.supply is None:
            return self.law.irreducible
        size = self.law.optimum_of_tokens(self.supply.total) * (1 + REPEATS_OF_PARAMETERS)
        return self.law.loss(size, self.supply.limit)

    def tokens_for(self, parameters: Floats | float, loss: float) -> Floats:
        """Tokens, repeats among them, that bring each size to `loss`; inf where none do."""
        law = self.law
        size = self.effective_parameters(parameters)
        room = law.excess(loss) - law.parameter_scale * size**-law.parameter_exponent
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            fresh = np.where(room > 0, (law.token_scale / np.maximum(room, 0.0)) ** (1 / law.token_exponent), np.inf)
        return fresh if self.supply is None else self.supply.tokens_worth(fresh)

    def parameters_for(self, tokens: float, loss: float) -> float | None:
        """Parameters that reach `loss` on that many tokens; None where no size does."""
        fresh = self.law.parameters_for(float(self.effective_tokens(tokens)), loss)
        if fresh is None or self.supply is None:
            return fresh
        base = self.law.optimum_of_tokens(self.supply.total)
        if fresh <= base:
            return fresh
        left = 1 - (fresh / base - 1) / REPEATS_OF_PARAMETERS
        return None if left <= 0 else base * (1 - REPEATS_OF_PARAMETERS * float(np.log(left)))

    def optimum_of_flops(self, flops: float) -> tuple[float, float]:
        """(N, D) of the lowest loss that `flops` of training buy."""
        parameters, tokens = self.law.optimum_of_flops(flops)
        if self.supply is None or tokens <= self.supply.once:
            return parameters, tokens  # nothing repeats there, and repeats only make every other point worse
        best = minimum(lambda sizes: self.losses(sizes, flops / TRAIN_FLOPS / sizes), parameters)
        return best, flops / TRAIN_FLOPS / best

    def optimum_of_loss(self, loss: float, inference_tokens: float = 0.0) -> tuple[float, float]:
        """(N, D) that reach `loss` with the fewest FLOPs, 6 N D of training and 2 N of each token inferred.

        Source: Sardana et al. 2023, arXiv:2401.00448. Raises BudgetError where the loss is out of reach.
        """
        parameters, tokens = self.law.optimum_of_loss(loss)
        if inference_tokens == 0 and (self.supply is None or tokens <= self.supply.once):
            return parameters, tokens

        def lifetime(sizes: Floats) -> Floats:
            return sizes * (TRAIN_FLOPS * self.tokens_for(sizes, loss) + INFERENCE_FLOPS * inference_tokens)

        if not np.isfinite(lifetime(grid(parameters))).any():
            told = "" if self.supply is None else f" of {self.supply.told()}"
            raise BudgetError(
                f"loss: {loss:g} is out of reach{told}; under law {self.law.name} it stays above {self.lowest():.4g}"
            )
        best = minimum(lifetime, parameters)
        return best, float(self.tokens_for(best, loss))


def grid(centre: float) -> Floats:
    exponents = np.linspace(-GRID_DECADES, GRID_DECADES, GRID_POINTS)
    return np.asarray(centre * 10.0**exponents, dtype=np.float64)


def minimum(cost: Callable[[Floats], Floats], centre: float) -> float:
    """The size of least cost within six decades of `centre`. cost: of an array of sizes; inf where none is possible."""
    sizes = grid(centre)
    at = int(np.argmin(cost(sizes)))
    low, high = np.log(sizes[max(at - 1, 0)]), np.log(sizes[min(at + 1, len(sizes) - 1)])
    for _ in range(48):  # 0.05 decades times 0.618^48 is below 1e-11
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        costs = cost(np.exp(np.array([left, right])))
        if costs[0] <= costs[1]:
            high = right
        else:
            low = left
    best = float(np.exp((low + high) / 2))
    return best if float(cost(np.array([best]))[0]) <= float(cost(sizes[at : at + 1])[0]) else float(sizes[at])
