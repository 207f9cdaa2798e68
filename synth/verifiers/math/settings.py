"""What counts as the same answer, where mathematics alone does not say."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Policies:
    """The policies of `math`, as a recipe's options.

    percent: either, 28% is 0.28 and also 28, as data sets of word problems have it; value, 28% is 0.28 only; number,
        28% is 28 only.
    units: lenient, one side may leave the unit out, but two known units must be the same; ignore, units say nothing;
        match, both must name the same unit or none. Units are never converted.
    degrees: optional, 45 degrees are 45; match, the sign must stand on both sides or on neither.
    rounding: exact; digits_given, a decimal on either side is right where the other rounds to it; tolerance, within
        `tolerance` of the gold, relatively. In each, a decimal of 10 or more significant digits that agrees with the
        other in all of them is right.
    tolerance: for rounding: tolerance.
    order: any, a list without brackets and a set are right in any order; given, a list must be in the gold's order.
        Tuples are always in order.
    bases: value, 204_5 is the number 54; optional, an answer without the base is read in the gold's.
    chains: last, `x = 5 + 6 = 11` is 11; consistent, every number in a chain must be the same, or it is wrong.
    decimal_comma: auto, `2,74` may be 2.74 where it has two or more decimals or begins with 0; always; never.
    bare_numbers: an answer that marks no result at all is read as the last number in it; else as none.
    second_opinion: undecided, math-verify is asked only where our own reading does not decide; always, of every
        answer that is not plain, so that `reason` tells where the two disagree (some 15 ms each); never.
    """

    percent: Literal["either", "value", "number"] = "either"
    units: Literal["lenient", "ignore", "match"] = "lenient"
    degrees: Literal["optional", "match"] = "optional"
    rounding: Literal["exact", "digits_given", "tolerance"] = "exact"
    tolerance: float = Field(default=1e-4, gt=0, lt=1)
    order: Literal["any", "given"] = "any"
    bases: Literal["value", "optional"] = "value"
    chains: Literal["last", "consistent"] = "last"
    decimal_comma: Literal["auto", "always", "never"] = "auto"
    bare_numbers: bool = True
    second_opinion: Literal["undecided", "always", "never"] = "undecided"
