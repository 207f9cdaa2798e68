"""`--set KEY=VALUE`: one-off changes of a recipe, laid over its tree before it is checked.

A step is addressed by its name, or by its kind where one of that kind alone is there or has no name
(`minhash.bands=20`), a source by `sources.NAME`, the rest by its own key.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from jobs.errors import nearest
from jobs.recipe_lines import Path, Tree, parse_value


def apply(tree: Tree, sets: Sequence[str], keys: Collection[str]) -> None:
    """Lay each KEY=VALUE over the tree; `keys` are the recipe's top-level keys. Mistakes are noted in the tree."""
    for index, text in enumerate(sets):
        key, equals, value = text.partition("=")
        here: Path = (f"--set {index}",)
        tree.origins[here] = f"--set {text}"
        parts = key.strip().split(".")
        if not equals or not all(parts):
            tree.add(here, "is not KEY=VALUE; write for example --set minhash.bands=20")
            continue
        path = _path(parts, tree, keys, here)
        if path is not None:
            _lay(tree, path, value, text, here)


def step_address(entry: Any) -> str | None:
    """What a step is called: its `name`, else its kind."""
    if not isinstance(entry, dict):
        return None
    said = entry.get("name", entry.get("step"))
    return said if isinstance(said, str) else None


def _path(parts: list[str], tree: Tree, keys: Collection[str], here: Path) -> Path | None:
    first, rest = parts[0], parts[1:]
    if first == "sources" and rest:
        return _source(rest, tree, here)
    if first == "steps" and rest:
        return _step(rest[0], rest[1:], tree, here, ())
    if first in keys:
        return tuple(parts)
    return _step(first, rest, tree, here, keys)


def _source(rest: list[str], tree: Tree, here: Path) -> Path | None:
    sources = tree.value.get("sources")
    names = [s.get("name") if isinstance(s, dict) else None for s in sources] if isinstance(sources, list) else []
    if rest[0] not in names:
        known = [name for name in names if isinstance(name, str)]
        tree.add(here, f"there is no source {rest[0]!r}; {nearest(rest[0], known, what='sources')}")
        return None
    return ("sources", names.index(rest[0]), *rest[1:])


def _step(address: str, rest: list[str], tree: Tree, here: Path, keys: Collection[str]) -> Path | None:
    entries = tree.value.get("steps")
    steps = [entry if isinstance(entry, dict) else {} for entry in entries] if isinstance(entries, list) else []
    named = [i for i, step in enumerate(steps) if step.get("name") == address]
    kinds = [i for i, step in enumerate(steps) if step.get("step") == address]
    nameless = [i for i in kinds if "name" not in steps[i]]
    found = named or (nameless if len(nameless) == 1 else kinds)
    if len(found) == 1 and rest:
        return ("steps", found[0], *rest)
    if len(found) == 1:
        tree.add(here, f"{address} is a step; name one of its settings: --set {address}.SETTING=VALUE")
    elif found:
        names = ", ".join(str(steps[i].get("name", "(no name yet)")) for i in found)
        tree.add(here, f"{address} stands {len(found)} times; use a step's name: {names}")
    else:
        known = [said for step in steps if (said := step_address(step))]
        what = "step or key" if keys else "step"
        tree.add(
            here, f"there is no {what} {address!r} in this recipe; {nearest(address, [*known, *keys], what='known')}"
        )
    return None


def _lay(tree: Tree, path: Path, text: str, said: str, here: Path) -> None:
    holder: Any = tree.value
    for part in path[:-1]:
        if isinstance(part, str) and isinstance(holder, dict) and holder.get(part) is None:
            holder[part] = {}
        holder = holder[part] if isinstance(part, int) or isinstance(holder, dict) else None
    if not isinstance(holder, dict):
        tree.add(here, f"{path[-2]} holds no settings of its own")
        return
    mistakes = len(tree.mistakes)
    tree.origins[path] = f"--set {said}"
    value = parse_value(text, path, tree)
    if len(tree.mistakes) == mistakes:
        holder[str(path[-1])] = value
