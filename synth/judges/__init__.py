"""Teachers as judges, as sub-flows for `yield from`; what they did not score stays unscored, never 0.

Judge                                          who judges and how (settings)
prefer(judge, pairs) -> Preferences            of two answers each, asked in both orders
position_bias(preferences)                     how often the order decided
grade(judge, question, answers) -> Opinions    on a stated scale
score(judge, question, answers, criteria)      criteria one at a time, 0 to 2 -> Scored
rescue(judge, verdict, ...) -> Verdict         a `wrong` of a rule that the votes agree is equivalent to the gold
lean(judge, pairs) -> Opinions                 probability that the first is better, of the letters' log-probabilities
Buffer, propose(...), retain(...)              criteria of one question that change as answers do
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.judges.equivalence import rescue
    from synth.judges.grading import grade
    from synth.judges.judging import Judge, Opinion
    from synth.judges.letters import lean
    from synth.judges.pairwise import Pair, Preference, position_bias, prefer
    from synth.judges.rubric_buffer import Buffer, propose, retain
    from synth.judges.rubrics import Criterion, Scored, score

_HOMES = {
    "Buffer": "synth.judges.rubric_buffer",
    "Criterion": "synth.judges.rubrics",
    "Judge": "synth.judges.judging",
    "Opinion": "synth.judges.judging",
    "Pair": "synth.judges.pairwise",
    "Preference": "synth.judges.pairwise",
    "Scored": "synth.judges.rubrics",
    "grade": "synth.judges.grading",
    "lean": "synth.judges.letters",
    "position_bias": "synth.judges.pairwise",
    "prefer": "synth.judges.pairwise",
    "propose": "synth.judges.rubric_buffer",
    "rescue": "synth.judges.equivalence",
    "retain": "synth.judges.rubric_buffer",
    "score": "synth.judges.rubrics",
}

__all__ = [
    "Buffer",
    "Criterion",
    "Judge",
    "Opinion",
    "Pair",
    "Preference",
    "Scored",
    "grade",
    "lean",
    "position_bias",
    "prefer",
    "propose",
    "rescue",
    "retain",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.judges' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
