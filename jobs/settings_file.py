"""A YAML file of settings for a job that is not a recipe (pretraining alone, SFT, proxies), read as strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from jobs import recipe_lines, recipe_paths, recipe_sets
from jobs.recipe import read
from jobs.recipe_mistakes import shown
from jobs.recipe_steps import construct

_T = TypeVar("_T")


def load(
    path: str, settings_class: type[_T], places: Mapping[str, str], sets: Sequence[str] = ()
) -> tuple[_T, dict[str, Any]]:
    """The settings that a file holds, and its `places`: {key: "path" or "paths"}, keys beside them that say where to
    read and write, all of them required.

    Raises MistakesError with a line for each mistake, UserError when the file cannot be read.
    """
    return _checked(
        recipe_lines.parse(read(path), path, begin=", ".join(f"{key}:" for key in places)), settings_class, places, sets
    )


def optional(path: str | None, settings_class: type[_T], sets: Sequence[str] = ()) -> _T:
    """The settings of a file that names no places, or all defaults where there is no file. Raises as `load` does."""
    tree = recipe_lines.tree_of({}, "settings") if path is None else recipe_lines.parse(read(path), path)
    return _checked(tree, settings_class, {}, sets)[0]


def _checked(
    tree: recipe_lines.Tree, settings_class: type[_T], places: Mapping[str, str], sets: Sequence[str]
) -> tuple[_T, dict[str, Any]]:
    fields = tuple(getattr(settings_class, "__dataclass_fields__", {}))
    recipe_sets.apply(tree, sets, (*places, *fields))
    found: dict[str, Any] = {}
    for key, kind in places.items():
        value = tree.value.pop(key, None)
        right = isinstance(value, str) and value if kind == "path" else _are_paths(value)
        if not right:
            wanted = f"{key}: folder/name" if kind == "path" else f"{key}: [folder/name]"
            said = "is missing" if value is None else f"expected {_expected(kind, value)}"
            tree.add((key,), f"{said}; write {wanted}", where=key)
            continue
        found[key] = recipe_paths.expanded(tree, (key,), value)
    settings = construct(tree, (), "", settings_class, tree.value)
    tree.check()
    assert settings is not None
    return settings, found


def _expected(kind: str, value: Any) -> str:
    if kind == "path":
        return f"text, got {shown(value)}"
    if not isinstance(value, list):
        return f"a list, got {shown(value)}"
    wrong = next((item for item in value if not (isinstance(item, str) and item)), None)
    return "a path at least, got an empty list" if not value else f"paths in the list, got {shown(wrong)}"


def _are_paths(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)
