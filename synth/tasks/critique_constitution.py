"""Principles and specifications, as files: those that are shipped here, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from synth.errors import SynthError

SHIPPED_PRINCIPLES: Final = Path(__file__).parent / "critique_principles.yaml"
SHIPPED_SPECIFICATION: Final = Path(__file__).parent / "critique_specification.txt"
WANTED: Final = "a list of principles is wanted, each with id, critique and revision"


@dataclass(frozen=True, kw_only=True)
class Principle:
    """id: what samples name it by. critique: what to look for. revision: what to do about it."""

    id: str
    critique: str
    revision: str


@lru_cache(maxsize=64)
def principles(file: str) -> tuple[Principle, ...]:
    """Of a YAML file, "" for the shipped one. Raises SynthError for a file that is not there or says something else."""
    import yaml

    path = Path(file) if file else SHIPPED_PRINCIPLES
    try:
        rows = yaml.safe_load(_text(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise SynthError(f"{path}: {f'line {mark.line + 1}: ' if mark else ''}not YAML; {WANTED}") from None
    if not isinstance(rows, list) or not rows:
        raise SynthError(f"{path}: {WANTED}")
    made = tuple(_principle(path, number, row) for number, row in enumerate(rows, 1))
    if twice := {one.id for one in made if sum(other.id == one.id for other in made) > 1}:
        raise SynthError(f"{path}: id {min(twice)!r} stands twice; give each its own")
    return made


def _principle(path: Path, number: int, row: Any) -> Principle:
    fields = ("id", "critique", "revision")
    if not isinstance(row, dict) or set(row) != set(fields):
        raise SynthError(f"{path}: number {number}: {WANTED}")
    if empty := [name for name in fields if not isinstance(row[name], str) or not row[name].strip()]:
        raise SynthError(f"{path}: number {number}: {empty[0]}: a text is wanted")
    return Principle(**{name: row[name].strip() for name in fields})


@lru_cache(maxsize=64)
def specification(file: str) -> str:
    """Of a text file, "" for the shipped one. Raises SynthError for one that is not there, or empty."""
    path = Path(file) if file else SHIPPED_SPECIFICATION
    text = _text(path).strip()
    if not text:
        raise SynthError(f"{path}: empty; a specification in plain text is wanted")
    return text


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise SynthError(f"{path}: {reason}; a text file in UTF-8 is wanted") from None
