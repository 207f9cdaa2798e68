"""The best mixture under constraints, what each constraint costs, and how flat the optimum is.

Constraints, Group                 what a mixture must keep to, by name, as a recipe says it
Polytope                           the same for given domains: contains, project, vertices, ranges, sample
"""

from mixing.optimum.constraints import Constraints, Group
from mixing.optimum.polytope import Polytope

__all__ = ["Constraints", "Group", "Polytope"]
