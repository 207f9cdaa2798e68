"""What a settings class says about itself: each field's type, default, bounds and meaning, read from the code."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from typing import Any

_WORDS: dict[Any, str] = {
    Any: "anything",
    int: "whole number",
    float: "number",
    str: "text",
    bool: "true or false",
    dict: "mapping",
    type(None): "nothing",
}
_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting. `default` is shown as YAML; "required" where there is none."""

    name: str
    type: str
    default: str
    bounds: str
    meaning: str


def settings_of(cls: type[Any], prefix: str = "") -> Iterator[Setting]:
    """The settings of a class in their order; nested settings classes as dotted names."""
    meanings = meanings_of(cls)
    for name, field in fields_of(cls).items():
        nested = _nested(field.annotation)
        if nested is not None:
            yield from settings_of(nested, f"{prefix}{name}.")
            continue
        default = field.get_default(call_default_factory=True)
        yield Setting(
            name=f"{prefix}{name}",
            type=type_words(field.annotation),
            default="required" if field.is_required() else yaml_of(default),
            bounds=", ".join(_bounds(field.metadata)),
            meaning=meanings.get(name, field.description or ""),
        )


def fields_of(cls: type[Any]) -> dict[str, Any]:
    """pydantic's fields of a dataclass or model."""
    return dict(getattr(cls, "__pydantic_fields__", {}))


def story_of(cls: type[Any]) -> str:
    """The docstrings of the class, and of the settings classes it builds on, without what they say of fields."""
    paragraphs: list[str] = []
    for text in _docstrings(cls):
        for start, end, _, _ in reversed(list(_told(text, list(fields_of(cls))))):
            text = text[:start] + text[end:]
        paragraphs += [part.strip() for part in re.split(r"\n[ \t]*\n", text)]
    return "\n\n".join(part for part in paragraphs if part)


def _docstrings(cls: type[Any]) -> list[str]:
    """Own docstrings of the class and its bases that have fields; not the one that dataclass makes of a signature."""
    own = [base.__dict__.get("__doc__") or "" for base in cls.__mro__ if fields_of(base)]
    return [inspect.cleandoc(text) for text in own if text and not re.match(r"\w+\(", text)]


def meanings_of(cls: type[Any]) -> dict[str, str]:
    """{field: what it means}: from the text under the field, else from `field: ...` in the class's docstring."""
    found: dict[str, str] = {}
    names = list(fields_of(cls))
    for text in reversed(_docstrings(cls)):
        for _, _, told, meaning in _told(text, names):
            found.update(dict.fromkeys(told, meaning))
    for base in reversed(cls.__mro__):
        found.update(_under_fields(base))
    return {name: " ".join(found[name].split()) for name in names if name in found}


def _told(text: str, names: list[str]) -> Iterator[tuple[int, int, list[str], str]]:
    """(start, end, fields, meaning) of each `field, field: meaning` in a docstring."""
    if not names:
        return
    one = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    marker = re.compile(rf"(?:^|(?<=[.:;)]\s))((?:{one})(?:, (?:{one}))*): ", re.MULTILINE)
    starts = list(marker.finditer(text))
    for index, match in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        stop = re.compile(r"\n[ \t]*\n|(?<=\.)\n(?=\S)").search(text, match.end(), end)
        end = stop.start() if stop else end
        yield match.start(), end, match[1].split(", "), text[match.end() : end].strip()


def _under_fields(cls: type[Any]) -> dict[str, str]:
    if cls.__module__ == "builtins":
        return {}
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for field, after in zip(statements, statements[1:], strict=False):
        is_text = (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        )
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            found[field.target.id] = inspect.cleandoc(typing.cast(Any, after).value.value)
    return found


def _nested(annotation: Any) -> type[Any] | None:
    if inspect.isclass(annotation) and hasattr(annotation, "__pydantic_fields__"):
        return annotation
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        inner = [argument for argument in typing.get_args(annotation) if argument is not type(None)]
        return _nested(inner[0]) if len(inner) == 1 else None
    return None


def type_words(annotation: Any) -> str:
    """An annotation in a reader's words: "list of text", "one of first, last", "number or nothing"."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return type_words(arguments[0])
    if origin is typing.Literal:
        return "one of " + ", ".join(str(argument) for argument in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(type_words(argument) for argument in arguments))
    if origin in (tuple, list, set, frozenset):
        inner = [argument for argument in arguments if argument is not Ellipsis]
        if origin is tuple and Ellipsis not in arguments:
            return f"list of {len(inner)}: {', '.join(type_words(argument) for argument in inner)}"
        return f"list of {type_words(inner[0])}" if inner else "list"
    if origin is dict:
        return f"mapping of {type_words(arguments[1])}"
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def yaml_of(value: Any) -> str:
    """A default as it would stand in a recipe."""
    if value is None or value is MISSING:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list, set, frozenset)):
        items = sorted(map(yaml_of, value)) if isinstance(value, (set, frozenset)) else map(yaml_of, value)
        return f"[{', '.join(items)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml_of(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, int) and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"{value >> 20}MiB" if value % (1 << 30) else f"{value >> 30}GiB"
    return str(value) if not isinstance(value, str) or value else '""'


def _bounds(metadata: list[Any]) -> Iterator[str]:
    for item in metadata:
        for key, sign in _BOUNDS.items():
            limit = getattr(item, key, None)
            if limit is not None:
                yield f"{sign} {limit:g}" if isinstance(limit, float) else f"{sign} {limit}"
