"""What a made row may be used for: the licence of what it was made from, and the terms of who made it.

A table of classes (licences.yaml), not legal advice: it stops what is plainly in conflict, and what nobody has looked
at. Each row's terms travel with it, so that what is decided otherwise later can be found again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as settings

Use = Literal["commercial", "research"]

CLASSES: Final = ("free", "share_alike", "research", "no_derivatives")


COMPOUND: Final = re.compile(r"\s+(?:AND|OR|WITH)\s+")


@cache
def _spelt() -> dict[str, str]:
    """SPDX names as they are spelt, by their lower case: SPDX compares without it."""
    return {name.casefold(): name for kind in CLASSES for name in _table()[kind]}


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("licences.yaml").read_text(encoding="utf-8"))
    return found


@settings(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Terms:
    """Terms of a teacher's outputs, by the teacher's name in the recipe.

    licence: an SPDX name where its outputs are under one (Apache-2.0 for models whose licence asks nothing of them).
    uses: what its terms allow its outputs to be used for. competing_models: whether models that compete with the
        teacher's may be trained on them. attribution: a name that what is trained must carry, or a notice to give.
    """

    licence: str = ""
    uses: tuple[Use, ...] = ("commercial", "research")
    competing_models: bool = True
    attribution: str = ""


@settings(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class LicencePolicy:
    """What the exported data is for.

    use: commercial or research. competing_models: whether what is trained competes with a teacher's maker.
    unknown: rows whose licence is not known, or whose teacher has no terms: refuse, or take.
    conflicting: rows that may not be used so: refuse the whole export, or leave_out (counted, with reasons).
    more: licences by name that the table lacks: free, share_alike, research or no_derivatives.
    """

    use: Use = "commercial"
    competing_models: bool = True
    unknown: Literal["refuse", "take"] = "refuse"
    conflicting: Literal["refuse", "leave_out"] = "refuse"
    more: dict[str, Literal["free", "share_alike", "research", "no_derivatives"]] = Field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RowTerms:
    """What travels with a row. licence: the one it is under, "" for none that asks anything. blocked: why it may not be
    used as the policy says, "" where it may: licence.<reason>."""

    licence: str
    teachers: tuple[str, ...] = ()
    attributions: tuple[str, ...] = ()
    blocked: str = ""


@dataclass(frozen=True, kw_only=True)
class Licences:
    """Decides rows under a policy. terms: of each teacher by name."""

    policy: LicencePolicy = field(default_factory=LicencePolicy)
    terms: Mapping[str, Terms] = field(default_factory=dict)

    def of(self, licence: str, teachers: Iterable[str]) -> RowTerms:
        """Of a row made from a text under `licence` ("" unknown) by these teachers."""
        licence = _spelt().get(licence.casefold(), licence)
        names = tuple(sorted(set(teachers)))
        known = [self.terms[name] for name in names if name in self.terms]
        licences = [licence, *(terms.licence for terms in known if terms.licence)]
        under = [one for one in dict.fromkeys(licences) if self._class(one) == "share_alike" or "-SA-" in one]
        return RowTerms(
            licence=self._strictest(under) or licence,
            teachers=names,
            attributions=tuple(sorted({terms.attribution for terms in known if terms.attribution})),
            blocked=self._blocked(licences, under, [name for name in names if name not in self.terms], known),
        )

    def _blocked(self, licences: list[str], under: list[str], without: list[str], known: list[Terms]) -> str:
        classes = {self._class(one) for one in licences}
        if "no_derivatives" in classes:
            return "licence.no_derivatives"
        if self.policy.use == "commercial" and "research" in classes:
            return "licence.research_only"
        if any(self.policy.use not in terms.uses for terms in known):
            return "licence.teacher_use"
        if self.policy.competing_models and not all(terms.competing_models for terms in known):
            return "licence.teacher_competes"
        if len(under) > 1 and not self._strictest(under):
            return "licence.conflict"
        if self.policy.unknown == "refuse" and "unknown" in classes:
            return "licence.unknown"
        return "licence.teacher_unknown" if self.policy.unknown == "refuse" and without else ""

    def _class(self, licence: str) -> str:
        """Of a compound (A AND B, A OR B) the strictest of its parts that is known, unknown if none is plainly free."""
        parts = [one for one in COMPOUND.split(licence.strip("() ")) if one] if COMPOUND.search(licence) else []
        if parts:
            found = [self._class(part.strip("() ")) for part in parts]
            return next((name for name in (*reversed(CLASSES[1:]), "unknown") if name in found), "free")
        licence = _spelt().get(licence.casefold(), licence)
        if licence in self.policy.more:
            return self.policy.more[licence]
        return next((name for name in CLASSES if licence in _table()[name]), "unknown")

    def _strictest(self, under: list[str]) -> str:
        """The one that all others may pass into; "" where there is none."""
        for one in under:
            if all(other == one or other in _table()["accepts"].get(one, ()) for other in under):
                return one
        return ""
