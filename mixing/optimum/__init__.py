"""The best mixture under constraints, what each constraint costs, and how flat the optimum is.

Constraints, Group                 what a mixture must keep to, by name, as a recipe says it
Objective                          what is minimised: weighted metrics, the worst of several, soft terms
Polytope                           the constraints for given domains: contains, project, vertices, ranges, sample
"""

from mixing.optimum.constraints import Constraints, Group
from mixing.optimum.objective import Objective
from mixing.optimum.polytope import Polytope

__all__ = ["Constraints", "Group", "Objective", "Polytope"]
