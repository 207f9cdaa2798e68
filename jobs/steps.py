"""The table of step kinds: what a recipe may write after `step:`, and the class whose fields are its settings.

Classes are named, not imported, so that `gristmill --help` stays quick; a room is imported when a recipe uses it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

from jobs.errors import UserError

Scope = Literal["document", "corpus"]


@dataclass(frozen=True, kw_only=True)
class StepKind:
    """One kind of step. `target` is "module:Class"; the class is a frozen dataclass and its fields are the settings.

    scope: "document" steps judge one document at a time and are fused; "corpus" steps compare documents with documents.
    """

    target: str
    scope: Scope
    summary: str

    def load(self) -> type[Any]:
        """The class itself. Raises UserError when this installation lacks it."""
        return load_target(self.target)


STEPS: dict[str, StepKind] = {
    "extract": StepKind(target="ingest:Extract", scope="document", summary="HTML to text, with its title and date"),
    "url": StepKind(target="filters:Url", scope="document", summary="hosts, addresses and words that are not wanted"),
    "language": StepKind(target="filters:Language", scope="document", summary="which language, and how surely"),
    "quality": StepKind(target="filters:Quality", scope="document", summary="signals of the text, and rules on them"),
    "redact": StepKind(target="filters:Redact", scope="document", summary="personal data replaced by placeholders"),
    "exact": StepKind(target="dedup:Exact", scope="corpus", summary="one of all documents with the same text"),
    "minhash": StepKind(target="dedup:Minhash", scope="corpus", summary="near duplicates, verified before removal"),
    "decontaminate": StepKind(
        target="dedup:Decontaminate", scope="document", summary="documents that hold benchmark items"
    ),
    "datatrove": StepKind(
        target="jobs.adapters:DatatroveStep", scope="document", summary="any datatrove filter or formatter"
    ),
    "python": StepKind(target="jobs.adapters:PythonStep", scope="document", summary="a step of your own"),
}

SOURCE = "ingest:Source"
TOKENS = "train:Tokens"
MIX = "mixing.loop:Mix"
TRAIN = "train:Pretrain"
SYNTH = "synth.running:Synth"


def load_target(target: str) -> type[Any]:
    """Import "module:Class". Raises UserError when this installation lacks it."""
    module_name, _, name = target.partition(":")
    try:
        found: type[Any] = getattr(importlib.import_module(module_name), name)
    except (ModuleNotFoundError, AttributeError) as error:
        missing = getattr(error, "name", None)
        raise UserError(f"{target} cannot be loaded: {missing or name} is missing; see: gristmill doctor") from error
    return found
