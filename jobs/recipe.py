"""The recipe: one YAML file that describes the whole way, read strictly, all mistakes at once.

Paths in a recipe are relative to the current directory and `~/` begins a home folder, as in a shell.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

from jobs import recipe_lines, recipe_mixture, recipe_paths, recipe_sets, recipe_steps
from jobs.errors import UserError, nearest
from jobs.recipe_lines import Tree
from jobs.recipe_model import KEYS, Recipe, Settings, StepEntry

__all__ = ["Recipe", "StepEntry", "build", "load"]


def load(path: str, sets: Sequence[str] = ()) -> Recipe:
    """Read and check a recipe; each of `sets` is a one-off "KEY=VALUE".

    Raises MistakesError with a line for each mistake, UserError when the file cannot be read.
    """
    return _checked(recipe_lines.parse(read(path), path), sets)


def build(document: Mapping[str, Any], sets: Sequence[str] = (), *, label: str = "recipe") -> Recipe:
    """The recipe of plain values: from a notebook, or what a finished run remembers. Raises as `load` does."""
    return _checked(recipe_lines.tree_of(document, label), sets)


def _checked(tree: Tree, sets: Sequence[str]) -> Recipe:
    recipe_sets.apply(tree, sets, KEYS)
    for key in tree.value:
        if key not in KEYS:
            tree.add((key,), f"unknown key; {nearest(key, KEYS, what='keys')}", where=key)
    recipe_paths.expand(tree)
    settings = recipe_steps.settings(tree)
    sources = recipe_steps.sources(tree)
    recipe_paths.check(tree, sources)
    steps = recipe_steps.steps(tree, sources)
    tokens, mix, train = recipe_steps.tokens(tree), recipe_steps.mix(tree), recipe_steps.train(tree)
    synth = recipe_steps.synth(tree)
    tree.check()
    assert settings is not None
    mix = None if mix is None else recipe_mixture.for_run(mix, train)
    return Recipe(
        **{name: getattr(settings, name) for name in Settings.__dataclass_fields__},
        sources=tuple(source for source in sources if source is not None),
        steps=steps,
        tokens=tokens,
        mix=mix,
        train=train,
        synth=synth,
        document=tree.value,
        path=tree.label,
    )


def read(path: str) -> bytes:
    """The bytes of a recipe or settings file. Raises UserError where it cannot be read."""
    try:
        if "://" in path:
            import fsspec

            with fsspec.open(path, "rb") as stream:
                return bytes(stream.read(recipe_lines.MAX_BYTES + 1))
        with open(path, "rb") as stream:
            return stream.read(recipe_lines.MAX_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such recipe; {_beside(path)}") from None
    except IsADirectoryError:
        raise UserError(
            f"{path}: is a folder, a recipe is a YAML file; {_beside(os.path.join(path, 'recipe.yaml'))}"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _beside(path: str) -> str:
    folder = File(path).parent
    near = [str(file) for pattern in ("*.yaml", "*.yml") for file in folder.glob(pattern)] if folder.is_dir() else []
    return nearest(path, near, what=f"recipes in {folder}")
