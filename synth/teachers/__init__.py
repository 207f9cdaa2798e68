"""Who answers: OpenAI-compatible servers, vLLM started here or in this process, all behind one small interface.

TeacherSettings, Vllm, InProcess     settings: which model, where, how patiently
open_teacher(settings) -> Teacher    the teacher of settings, whatever its backend; nothing is started yet
opened(teacher)                      async context manager: open it, close it behind the block
Teacher                              the interface: identity, capacity, open, close, generate
parse(reply, tags) -> Parsed         reasoning, answer and how it ended
FinishPolicy, reply_with_policy      what to do with each end; a sub-flow for `yield from`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from synth.teachers.backends import open_teacher
    from synth.teachers.finishing import FinishPolicy, reply_with_policy
    from synth.teachers.parsing import Tags, parse
    from synth.teachers.settings import InProcess, TeacherSettings, Vllm
    from synth.teachers.teacher import Teacher, opened

__all__ = [
    "FinishPolicy",
    "InProcess",
    "Tags",
    "Teacher",
    "TeacherSettings",
    "Vllm",
    "open_teacher",
    "opened",
    "parse",
    "reply_with_policy",
]

_HOMES = {
    "FinishPolicy": "synth.teachers.finishing",
    "InProcess": "synth.teachers.settings",
    "Tags": "synth.teachers.parsing",
    "Teacher": "synth.teachers.teacher",
    "TeacherSettings": "synth.teachers.settings",
    "Vllm": "synth.teachers.settings",
    "open_teacher": "synth.teachers.backends",
    "opened": "synth.teachers.teacher",
    "parse": "synth.teachers.parsing",
    "reply_with_policy": "synth.teachers.finishing",
}


def __getattr__(name: str) -> Any:
    # pydantic's models take a while to build, and flows need none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'synth.teachers' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
