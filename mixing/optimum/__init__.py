"""The best mixture under constraints, what each constraint costs, and how flat the optimum is.

Constraints, Group                          what a mixture must keep to, by name, as a recipe says it
Objective                                   what is minimised: weighted metrics, the worst of several, soft terms
optimize(law, objective, constraints, ...)  -> Mixture: weights, tokens, epochs, certificate, prices, near-optimal set
Polytope                                    the constraints for given domains: contains, project, ranges, sample
temperature, unimax                         mixtures that people use without a law
"""

from mixing.optimum.baselines import temperature, unimax
from mixing.optimum.constraints import Constraints, Group
from mixing.optimum.mixture import Mixture
from mixing.optimum.objective import Objective
from mixing.optimum.optimizing import optimize
from mixing.optimum.polytope import Polytope

__all__ = ["Constraints", "Group", "Mixture", "Objective", "Polytope", "optimize", "temperature", "unimax"]
