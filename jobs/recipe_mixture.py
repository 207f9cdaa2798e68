"""What a recipe's `mix:` and `train:` say of domains, held against its sources, before any token is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobs.errors import nearest
from jobs.recipe_lines import Path, Tree

if TYPE_CHECKING:
    from mixing.loop import Mix
    from train import Pretrain

WHOLE = "all"  # the one stream of shards that are not by domain
CONSTRAINED = ("floors", "ceilings", "prior", "baseline", "max_ratio", "max_epochs", "unique_tokens")
"""Constraints of a mixture that may be told by domain."""


def check_mixture(tree: Tree, domains: set[str]) -> None:
    """Weights and epochs name domains of the sources, and weights all of them. The section is right otherwise."""
    known = _streams(tree, domains)
    found = tree.value.get("mix", False) is not False
    for path, told in _by_domain(tree.value.get("train") or {}):
        where = _where(path)
        if found and path[-1] == "weights":
            tree.add(path, "stands beside mix:, which finds the weights; remove one of them", where=where)
            continue
        _check_names(tree, path, told, known)
        missing = sorted(known - set(told)) if path[-1] == "weights" else []
        if missing:
            tree.add(path, f"none for {', '.join(missing)}; give each domain one, 0 to leave it out", where=where)


def check_mix(tree: Tree, domains: set[str]) -> None:
    """Constraints name domains of the sources. The section is right otherwise."""
    known = _streams(tree, domains)
    section = tree.value.get("mix") or {}
    constraints = section.get("constraints") or {}
    for key in CONSTRAINED:
        if isinstance(constraints.get(key), dict):
            _check_names(tree, ("mix", "constraints", key), constraints[key], known)
    for name, group in (constraints.get("groups") or {}).items():
        _check_names(tree, ("mix", "constraints", "groups", name, "domains"), group["domains"], known)
    if isinstance(section.get("max_epochs"), dict):
        _check_names(tree, ("mix", "max_epochs"), section["max_epochs"], known)


def for_run(mix: Mix, train: Pretrain | None) -> Mix:
    """The mix of a recipe, for a run of the length that its `train:` has where it names none."""
    if mix.tokens is not None or train is None:
        return mix
    return replace(mix, tokens=float(train.tokens or train.total_steps * train.batch_sequences * train.sequence_tokens))


def _streams(tree: Tree, domains: set[str]) -> set[str]:
    """The domains that the token shards have."""
    tokens = tree.value.get("tokens")
    return {WHOLE} if isinstance(tokens, dict) and tokens.get("by_domain") is False else domains


def _check_names(tree: Tree, path: Path, told: Iterable[str], known: set[str]) -> None:
    for index, name in enumerate(told):
        if name not in known:
            what = f"no source has the domain {name!r}; {nearest(name, known, what='domains')}"
            tree.add((*path, name if isinstance(told, dict) else index), what, where=_where(path))


def _where(path: Path) -> str:
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in path)


def _by_domain(section: dict[str, Any]) -> Iterator[tuple[Path, Iterable[str]]]:
    """Each mapping of the section, or of its changes, whose keys are domains."""
    changes = section.get("changes") or ()
    places: list[tuple[Path, dict[str, Any]]] = [(("train",), section)]
    places += [(("train", "changes", at), change) for at, change in enumerate(changes)]
    for path, told in places:
        for key in ("weights", "max_epochs"):
            if isinstance(told.get(key), dict):
                yield (*path, key), told[key]
