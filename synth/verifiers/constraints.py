"""The `constraints` kind: the 25 verifiable instructions of IFEval, by its names and parameters.

Source: Zhou et al. 2023, arXiv:2311.07911, table 1. Rows of IFEval, and of training sets in its form, can be read as
they are: gold is the row's instruction_id_list and kwargs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from pydantic import ConfigDict, ValidationError, validate_call
from pydantic.dataclasses import dataclass

from synth.verdicts import Outcome, Verdict
from synth.verifiers.constraints_layout import LAYOUT
from synth.verifiers.constraints_words import WORDS
from synth.verifiers.language_text import told
from synth.verifiers.verifier import read_options

CONSTRAINTS: Final[dict[str, Any]] = {**WORDS, **LAYOUT}
"""Every constraint by IFEval's id: a function of the answer and the row's parameters."""

MAX_CHARS: Final = 200_000
Constraint = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Following:
    """How an answer is held against its constraints.

    constraints: for rows without a gold: mappings with `id` and the parameters. loose: kept by one of eight forms of
    the answer is kept (as it is, without first line, last line, both; each with and without asterisks), as the paper's
    loose accuracy has it.
    """

    constraints: tuple[Mapping[str, Any], ...] = ()
    loose: bool = False


class Constraints:
    """Right if every constraint is kept; the score is the share of those that are, the reason the first that is not.

    gold: {instruction_id_list, kwargs} as IFEval has it, or a list of {id, ...parameters}, or JSON text of either;
    parameters that are None are taken for absent. An unknown id, and parameters that do not fit it, are errors. Where
    one cannot be told (the language of a few words) and no other is broken, unscored.
    """

    kind = "constraints"
    version = "1"

    def prepare(self) -> None:
        """Load what tells languages before a check's time runs."""
        told(["Some words of a language."])

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        settings = read_options(Following, options, kind=self.kind)
        wanted = read_constraints(gold if gold is not None else list(settings.constraints))
        if not wanted:
            return Verdict(outcome=Outcome.ERROR, reason="gold_has_no_constraints")
        if len(answer) > MAX_CHARS:
            return Verdict(outcome=Outcome.WRONG, reason="too_long", score=0.0)
        # Parameters are read before the answer is looked at: a broken row is an error for a blank answer, too.
        kept: list[bool | None] = []
        for name, parameters in wanted:
            try:
                kept.append(_kept(name, parameters, answer, settings.loose))
            except (ValidationError, KeyError):
                unknown = name not in CONSTRAINTS
                return Verdict(outcome=Outcome.ERROR, reason="unknown_constraint" if unknown else f"parameters.{name}")
        score = sum(value is True for value in kept) / len(kept)
        for outcome, value in ((Outcome.WRONG, False), (Outcome.UNSCORED, None)):
            if value in kept:
                return Verdict(outcome=outcome, reason=wanted[kept.index(value)][0], score=score)
        return Verdict(outcome=Outcome.RIGHT, reason="kept", score=score)


def read_constraints(gold: Any) -> list[Constraint]:
    """Ids and parameters of a gold; none where it has another shape."""
    if isinstance(gold, str):
        try:
            gold = json.loads(gold)
        except (ValueError, RecursionError):
            return []
    if isinstance(gold, Mapping) and "instruction_id_list" in gold:
        names, parameters = gold["instruction_id_list"], gold.get("kwargs")
    elif isinstance(gold, Sequence) and all(isinstance(one, Mapping) for one in gold):
        names = [one.get("id") for one in gold]
        parameters = [{name: value for name, value in one.items() if name != "id"} for one in gold]
    else:
        return []
    if not isinstance(names, list | tuple) or not isinstance(parameters, list | tuple) or len(names) != len(parameters):
        return []
    if not all(isinstance(one, Mapping) for one in parameters):
        return []
    given = [{str(name): value for name, value in one.items() if value is not None} for one in parameters]
    return list(zip(map(str, names), given, strict=True))


def _kept(name: str, parameters: Mapping[str, Any], answer: str, loose: bool) -> bool | None:
    checked = _checked(name)
    first: bool | None = checked(answer, **parameters) if answer.strip() else checked("-", **parameters) and False
    if first or not loose:
        return first
    return any(checked(form, **parameters) for form in loose_forms(answer)) or first


@cache
def _checked(name: str) -> Callable[..., bool | None]:
    made: Callable[..., bool | None] = validate_call(CONSTRAINTS[name])
    return made


def loose_forms(answer: str) -> list[str]:
    """The seven other forms of an answer, blank ones left out."""
    lines = answer.split("\n")
    cut = [answer, "\n".join(lines[1:]), "\n".join(lines[:-1]), "\n".join(lines[1:-1])]
    forms = [*cut, *(form.replace("*", "") for form in cut)]
    return [form for form in forms[1:] if form.strip()]
