"""What pydantic found wrong, in a reader's words: one mistake a place, each with what would be right."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Sequence
from typing import Any

from jobs.errors import nearest
from jobs.recipe_lines import Path, Tree

_TOLD = re.compile(r"([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)*): ")
UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "tuple": "a list",
    "list": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping",
    "dataclass": "a mapping",
    "model": "a mapping",
    "none_required": "nothing",
}
TRUTH = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
LIMITS = {"greater_than_equal": "ge", "less_than_equal": "le", "greater_than": "gt", "less_than": "lt"}


def note(tree: Tree, path: Path, where: str, settings: type[Any], errors: Sequence[Any]) -> None:
    """Note the errors of validating the value at `path` as `settings`; errors of one place (a union's) become one."""
    value = at(tree.value, path)
    places: dict[Path, list[Any]] = {}
    for error in errors:
        places.setdefault(_place(error, value, settings), []).append(error)
    unknown = {str(inner[-1]): inner[:-1] for inner, found in places.items() if found[0]["type"] in UNKNOWN}
    for inner, found in places.items():
        if found[0]["type"] == "missing" and any(
            around == inner[:-1] and difflib.get_close_matches(key, [str(inner[-1])], n=1)
            for key, around in unknown.items()
        ):
            continue  # it is there, misspelt, and the misspelling is told
        said = ".".join([where, *(str(part) for part in inner if isinstance(part, str))]).strip(".")
        what = _sentence(found, inner, at(value, inner), tree.raw.get((*path, *inner)), settings)
        tree.add((*path, *inner), what, where=said)


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def at(value: Any, path: Path) -> Any:
    """The value at `path` of nested mappings and lists, None where there is nothing."""
    for part in path:
        if not _holds(value, part):
            return None
        value = value[part]
    return value


def fields_at(settings: Any, path: Path) -> list[str]:
    """The field names of the settings class at `path` inside `settings`; [] where there is none."""
    for part in path:
        if not isinstance(part, str):
            continue
        field = getattr(settings, "__pydantic_fields__", {}).get(part)
        settings = _settings_in(field.annotation) if field is not None else _settings_in(settings)
        if settings is None:
            return []
    return list(getattr(settings, "__pydantic_fields__", {}))


def _settings_in(annotation: Any) -> Any:
    if hasattr(annotation, "__pydantic_fields__"):
        return annotation
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, tuple, list, dict, typing.Annotated):
        for inner in typing.get_args(annotation):
            found = _settings_in(inner)
            if found is not None:
                return found
    return None


def _place(error: Any, value: Any, settings: type[Any]) -> Path:
    """Where in the user's value an error lies: pydantic's own path names union members too."""
    place: list[str | int] = []
    for part in error["loc"]:
        if _holds(value, part):
            value = value[part]
        elif error["type"] != "missing":
            continue
        place.append(part)
    told = _TOLD.match(str(error.get("ctx", {}).get("error", "")))
    if told and told[1].partition(".")[0] in fields_at(settings, tuple(place)):
        place += told[1].split(".")
    return tuple(place)


def _sentence(errors: list[Any], place: Path, value: Any, raw: str | None, settings: type[Any]) -> str:
    expected = [kind for error in errors if (kind := _expected(error["type"]))]
    others = [error for error in errors if not _expected(error["type"])]
    if others:
        return _one(others[0], place, value, settings)
    wanted = list(dict.fromkeys(expected))
    return f"expected {' or '.join(wanted)}, got {shown(value, raw)}{_mend(wanted, value, raw)}"


def _expected(kind: str) -> str | None:
    for ending in ("_type", "_parsing", "_from_float"):
        if kind.endswith(ending):
            return EXPECTED.get(kind.removesuffix(ending))
    return EXPECTED.get(kind)


def _one(error: Any, place: Path, value: Any, settings: type[Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    last = place[-1] if place else ""
    match kind:
        case "missing" if isinstance(last, int):
            said = f"has too few values; number {last + 1} is missing"
        case "missing":
            said = f"is missing; add {last}: ..."
        case _ if kind in UNKNOWN:
            said = f"unknown key; {nearest(str(last), fields_at(settings, place[:-1]), what='keys')}"
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            said = _limit(kind, context[LIMITS[kind]], value)
        case "literal_error":
            choices = re.findall(r"'([^']*)'", context["expected"])
            said = f"{shown(value)} is not one of {context['expected']}; {nearest(str(value), choices, what='choose')}"
        case "too_long":
            said = f"has {context['actual_length']} values; at most {context['max_length']} fit"
        case "too_short":
            said = f"has {context['actual_length']} values; at least {context['min_length']} are needed"
        case "value_error" | "assertion_error":
            said = str(context["error"])
            told = _TOLD.match(said)
            said = said[told.end() :] if told and told[1].rpartition(".")[2] == last else said
        case _:
            said = str(error["msg"]).replace("Input should", "should").replace("String should", "should")
    return said


def _limit(kind: str, limit: Any, value: Any) -> str:
    limit = int(limit) if isinstance(limit, float) and limit.is_integer() else limit
    if kind == "greater_than_equal":
        return f"{value} is below {limit}, the smallest that is allowed"
    if kind == "less_than_equal":
        return f"{value} is above {limit}, the largest that is allowed"
    return f"{value} must be {'above' if kind == 'greater_than' else 'below'} {limit}"


def shown(value: Any, raw: str | None = None) -> str:
    """A value of a recipe as its reader would say it."""
    if value is None:
        return "nothing"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:37] + "...")
    return raw if raw is not None else str(value).lower() if isinstance(value, bool) else str(value)


def _mend(wanted: list[str], value: Any, raw: str | None) -> str:
    if "text" in wanted and isinstance(value, (bool, int, float)):
        return f'; quote it: "{shown(value, raw)}"'
    if "a list" in wanted and isinstance(value, (str, int, float)) and "a mapping" not in wanted:
        return f"; write [{shown(value, raw) if not isinstance(value, str) else value}]"
    if "true or false" in wanted and isinstance(value, str):
        truth = TRUTH.get(value.lower())
        return f"; write {truth}" if truth else ""
    if (
        ("a number" in wanted or "a whole number" in wanted)
        and isinstance(value, str)
        and re.fullmatch(r"[0-9.]+", value)
    ):
        return "; remove the quotes" if raw is None else ""
    return ""
