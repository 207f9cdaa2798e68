"""Parametric scaling laws: loss from parameters and tokens, and the closed forms of what is best.

    L(N, D) = E + A / N^alpha + B / D^beta        nats a token; N counts every parameter, embeddings too; C = 6 N D

At fixed C the minimum lies where alpha A / N^alpha = beta B / D^beta, so with G = (alpha A / beta B)^(1/(alpha+beta)):
N* = G (C/6)^(beta/(alpha+beta)) and D* = (C/6) / N*  (Hoffmann et al. 2022, arXiv:2203.15556, equation 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Final

import numpy as np
from numpy.typing import NDArray

from train.compute.numbers import BudgetError

Floats = NDArray[np.float64]

TRAIN_FLOPS: Final = 6.0  # a parameter and token: 2 forwards, 4 backwards (Kaplan et al. 2020, arXiv:2001.08361, 2.1)
INFERENCE_FLOPS: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Law:
    """One fit of the law above. source: where the five numbers stand."""

    name: str
    irreducible: float  # E, nats a token
    parameter_scale: float  # A
    token_scale: float  # B
    parameter_exponent: float  # alpha
    token_exponent: float  # beta
    source: str

    @property
    def compute_exponent(self) -> float:
        """a in N* ~ C^a."""
        return self.token_exponent / (self.parameter_exponent + self.token_exponent)

    @property
    def balance(self) -> float:
        """G in N* = G (C/6)^a."""
        a, b = self.parameter_exponent, self.token_exponent
        return float((a * self.parameter_scale / (b * self.token_scale)) ** (1 / (a + b)))

    def loss(self, parameters: float, tokens: float) -> float:
        """Nats a token after `tokens` fresh tokens."""
        return self.irreducible + self.parameter_term(parameters) + self.token_term(tokens)

    def parameter_term(self, parameters: float) -> float:
        return float(self.parameter_scale * parameters**-self.parameter_exponent)

    def token_term(self, tokens: float) -> float:
        return float(self.token_scale * tokens**-self.token_exponent)

    def optimum_of_flops(self, flops: float) -> tuple[float, float]:
        """(N*, D*) of the lowest loss that `flops` = 6 N D buy."""
        parameters = self.balance * (flops / TRAIN_FLOPS) ** self.compute_exponent
        return parameters, flops / TRAIN_FLOPS / parameters

    def optimum_of_loss(self, loss: float) -> tuple[float, float]:
        """(N*, D*) that reach `loss` with the fewest FLOPs. Raises BudgetError at or below the irreducible loss."""
        excess = self.excess(loss)
        a, b = self.parameter_exponent, self.token_exponent
        return (
            float((self.parameter_scale * (1 + a / b) / excess) ** (1 / a)),
            float((self.token_scale * (1 + b / a) / excess) ** (1 / b)),
        )

    def optimum_of_tokens(self, tokens: float) -> float:
        """The N for which `tokens` are compute-optimal."""
        g = self.balance
        return float(g * (tokens * g) ** (self.token_exponent / self.parameter_exponent))

    def optimum_of_parameters(self, parameters: float) -> float:
        """The D that is compute-optimal for `parameters`."""
        g = self.balance
        return float((parameters / g) ** (self.parameter_exponent / self.token_exponent) / g)

    def tokens_for(self, parameters: float, loss: float) -> float | None:
        """Fresh tokens that bring a model of that size to `loss`; None where no number of tokens does."""
        room = self.excess(loss) - self.parameter_term(parameters)
        return None if room <= 0 else float((self.token_scale / room) ** (1 / self.token_exponent))

    def parameters_for(self, tokens: float, loss: float) -> float | None:
        """Parameters that reach `loss` on that many fresh tokens; None where no size does."""
        room = self.excess(loss) - self.token_term(tokens)
        return None if room <= 0 else float((self.parameter_scale / room) ** (1 / self.parameter_exponent))

    def excess(self, loss: float) -> float:
        """Loss above the irreducible one; raises BudgetError where there is none."""
        if not loss > self.irreducible:
            raise BudgetError(
                f"loss: {loss:g} is not above {self.irreducible:g}, the irreducible loss of law {self.name}"
            )
        return loss - self.irreducible


# Hoffmann's law stands twice: the numbers printed in the paper's text, and those of its TeX source (read by Besiroglu
# et al.). They disagree by a factor of 1.6 in tokens a parameter at 5.76e23 FLOPs, so neither is a default: Besiroglu's
# refit is, as it agrees with Hoffmann's other two approaches.
LAWS: Final[dict[str, Law]] = {
    law.name: law
    for law in (
        Law(
            name="besiroglu",
            irreducible=1.8172,
            parameter_scale=482.01,
            token_scale=2085.43,
            parameter_exponent=0.3478,
            token_exponent=0.3658,
            source="Besiroglu et al. 2024, arXiv:2404.10102 (refit of Hoffmann's points)",
        ),
        Law(
            name="hoffmann",
            irreducible=1.69,
            parameter_scale=406.4,
            token_scale=410.7,
            parameter_exponent=0.34,
            token_exponent=0.28,
            source="Hoffmann et al. 2022, arXiv:2203.15556, equation 10 (rounded)",
        ),
        Law(
            name="hoffmann_tex",
            irreducible=1.6934,
            parameter_scale=406.4,
            token_scale=410.7,
            parameter_exponent=0.3392,
            token_exponent=0.2849,
            source="TeX source of arXiv:2203.15556, as read in arXiv:2404.10102",
        ),
        Law(
            name="muennighoff",
            irreducible=exp(0.6254804),
            parameter_scale=exp(6.255414),
            token_scale=exp(7.3049974),
            parameter_exponent=0.3526596,
            token_exponent=0.3526596,
            source="Muennighoff et al. 2023, arXiv:2305.16264 (one exponent for both terms)",
        ),
    )
}
