"""Which class answers for which settings."""

from __future__ import annotations

import importlib
from typing import Final, cast

from synth.teachers.settings import Backend, TeacherSettings
from synth.teachers.teacher import Teacher

BACKENDS: Final[dict[Backend, str]] = {
    "http": "synth.teachers.http_teacher:HttpTeacher",
    "vllm": "synth.teachers.vllm_server:ServedTeacher",
    "in_process": "synth.teachers.vllm_engine:EngineTeacher",
}
"""Imported when they are asked for: aiohttp and vLLM are heavy. Each is made of the settings alone."""


def open_teacher(settings: TeacherSettings) -> Teacher:
    """The teacher of these settings, its identity known, nothing started yet: `async with opened(...)` starts it."""
    module, name = BACKENDS[settings.backend].split(":")
    return cast(Teacher, getattr(importlib.import_module(module), name)(settings))
