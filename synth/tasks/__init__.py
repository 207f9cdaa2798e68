"""The kinds of data that can be made, each a flow of requests and checks for an item.

TASKS         every kind that a recipe may write, and where its class (its settings, too) stands
load(kind)    the class of a kind
"""

from __future__ import annotations

from typing import Any, Final

from synth.errors import SynthError

__all__ = ["TASKS", "load"]

TASKS: Final[dict[str, str]] = {
    "back_translation": "synth.tasks.back_translation:BackTranslation",
    "best_of": "synth.tasks.best_of:BestOf",
    "critique": "synth.tasks.critique:Critique",
    "deliberate": "synth.tasks.critique_deliberate:Deliberate",
    "distill": "synth.tasks.distill:Distill",
    "education": "synth.tasks.education:Education",
    "evolve": "synth.tasks.evolve:Evolve",
    "magpie": "synth.tasks.magpie:Magpie",
    "multi_turn": "synth.tasks.multi_turn:MultiTurn",
    "persona": "synth.tasks.persona:Persona",
    "preference": "synth.tasks.preference:Preference",
    "process_labels": "synth.tasks.process_labels:ProcessLabels",
    "question_answer": "synth.tasks.question_answer:QuestionAnswer",
    "rephrase": "synth.tasks.rephrase:Rephrase",
    "rubric": "synth.tasks.rubric:Rubric",
    "self_instruct": "synth.tasks.self_instruct:SelfInstruct",
    "tools": "synth.tasks.tools:Tools",
    "translated": "synth.tasks.translated:Translated",
    "verify_revise": "synth.tasks.verify_revise:VerifyRevise",
}
"""Every kind that a recipe may write, and where its class stands."""


def load(kind: str) -> type[Any]:
    """The class of a kind. Raises SynthError, with the kinds there are, for another."""
    import importlib

    if kind not in TASKS:
        raise SynthError(f"task {kind!r}: no such kind; there are {', '.join(sorted(TASKS))}")
    module, name = TASKS[kind].split(":")
    loaded: type[Any] = getattr(importlib.import_module(module), name)
    return loaded
