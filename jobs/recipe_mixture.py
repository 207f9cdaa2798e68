"""What a recipe's `train:` says of domains, held against its sources, before any token is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jobs.errors import nearest
from jobs.recipe_lines import Path, Tree

WHOLE = "all"  # the one stream of shards that are not by domain


def check_mixture(tree: Tree, domains: set[str]) -> None:
    """Weights and epochs name domains of the sources, and weights all of them. The section is right otherwise."""
    tokens = tree.value.get("tokens")
    known = {WHOLE} if isinstance(tokens, dict) and tokens.get("by_domain") is False else domains
    for path, told in _by_domain(tree.value.get("train") or {}):
        where = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
        for name in told:
            if name not in known:
                what = f"no source has the domain {name!r}; {nearest(name, known, what='domains')}"
                tree.add((*path, name), what, where=where)
        missing = sorted(known - set(told)) if path[-1] == "weights" else []
        if missing:
            tree.add(path, f"none for {', '.join(missing)}; give each domain one, 0 to leave it out", where=where)


def _by_domain(section: dict[str, Any]) -> Iterator[tuple[Path, Iterable[str]]]:
    """Each mapping of the section, or of its changes, whose keys are domains."""
    changes = section.get("changes") or ()
    places: list[tuple[Path, dict[str, Any]]] = [(("train",), section)]
    places += [(("train", "changes", at), change) for at, change in enumerate(changes)]
    for path, told in places:
        for key in ("weights", "max_epochs"):
            if isinstance(told.get(key), dict):
                yield (*path, key), told[key]
