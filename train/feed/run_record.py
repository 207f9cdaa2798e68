"""RUN/plan.json: what an audit needs besides the ledger: the plan's state, and where its tokens lie."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shards.store import exists, filesystem, is_local, join, read_json, write_json
from train.feed.ledger import LedgerError

NAME = "plan.json"
MANIFEST = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """plan: the plan's state. tokens: the folders of its token shards. seen_from_run: the same from the run's folder,
    None for what lies on another file system."""

    plan: dict[str, Any]
    tokens: tuple[str, ...]
    seen_from_run: tuple[str | None, ...]

    def folders(self, run: str) -> list[str]:
        """Where the tokens lie now: where they were, or as near to the run as they were, if both were moved together.

        Raises LedgerError where they are in neither place.
        """
        found = []
        for told, near in zip(self.tokens, self.seen_from_run, strict=True):
            places = [told] if near is None else [told, os.path.normpath(join(filesystem(run)[1], near))]
            there = next((place for place in places if exists(join(place, MANIFEST))), None)
            if there is None:
                where = f"{run}: its tokens are not in {told} any more"
                raise LedgerError(f"{where}; name where they are now (--shards DIR)")
            found.append(there)
        return found


def write_run_record(
    run: str, *, plan: Mapping[str, Any], tokens: Sequence[str], settings: Mapping[str, Any] | None = None
) -> None:
    """Write RUN/plan.json. tokens: folders as whole paths or URLs. settings: of the training, for people to read."""
    here = filesystem(run)[1]
    near = [os.path.relpath(folder, here) if is_local(folder) and is_local(run) else None for folder in tokens]
    told = {"plan": dict(plan), "tokens": list(tokens), "tokens_seen_from_run": near}
    write_json(join(run, NAME), told if settings is None else {**told, "settings": dict(settings)})


def read_run_record(run: str) -> RunRecord:
    """What RUN/plan.json tells. Raises LedgerError where there is none, or where it is not whole."""
    told = read_json(join(run, NAME))
    plan, tokens = (told or {}).get("plan"), (told or {}).get("tokens")
    if told is None or not isinstance(plan, dict) or not isinstance(tokens, list) or not all(map(_is_text, tokens)):
        raise LedgerError(f"{run}: no {NAME} of a run; name the folder that training wrote to")
    near = told.get("tokens_seen_from_run")
    if not isinstance(near, list) or len(near) != len(tokens):
        near = [None] * len(tokens)
    seen = [one if _is_text(one) else None for one in near]
    return RunRecord(plan=plan, tokens=tuple(tokens), seen_from_run=tuple(seen))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
