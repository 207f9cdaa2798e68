"""The paths of a recipe: `~` is a home folder, an output is one place that can be written, and inputs lie elsewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from jobs.errors import nearest
from jobs.recipe_lines import Path, Tree

if TYPE_CHECKING:
    from ingest import Source

_HOME = re.compile(r"~[A-Za-z0-9._-]*(/.*)?", re.DOTALL)
_NOT_PATHS = frozenset({"step", "name", "domains", "args"})
_WILD = "*?["
_READ_ONLY = ("http", "https", "data", "git", "github", "zip", "tar", "libarchive", "reference", "local", "filecache")
_WRITTEN = (
    "run.json", "report.json", "report.html", "00-read/manifest.json", "01-extract/manifest.json",
    *(f"01-extract/{kind}/part-00000-of-00016.parquet" for kind in ("data", "dropped", "signals", "quarantine")),
)  # fmt: skip
"""Files of the kinds that a run writes, to see whether a pattern would match such."""


def expand(tree: Tree) -> None:
    """Put home folders in place of `~/` and `~name/`: in the output, the inputs, and the files that steps read.

    The arguments of a step made elsewhere (`args:`) are its own and stay as they are.
    """
    for key in ("output", "sources", "steps", "tokens", "mix", "train", "synth"):
        if key in tree.value:
            tree.value[key] = expanded(tree, (key,), tree.value[key])


def expanded(tree: Tree, path: Path, value: Any) -> Any:
    """A value with each home folder in it put in place; what has none here is noted as a mistake."""
    if isinstance(value, list):
        return [expanded(tree, (*path, index), item) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: item if key in _NOT_PATHS else expanded(tree, (*path, key), item) for key, item in value.items()}
    if not isinstance(value, str) or not _HOME.fullmatch(value) or ("/" not in value and path != ("output",)):
        return value
    home = os.path.expanduser(value)
    if home == value:
        where = ".".join(part if isinstance(part, str) else str(part + 1) for part in path)
        tree.add(path, f"{value.partition('/')[0]} has no home folder here; write the path in full", where=where)
    return home


def check(tree: Tree, sources: Sequence[Source | None]) -> None:
    """Note what is wrong with the output, and every input that it would run into."""
    output = tree.value.get("output")
    if not isinstance(output, str) or not output:
        return
    wrong = _unfit(output)
    if wrong:
        tree.add(("output",), wrong, where="output")
        return
    for index, source in enumerate(sources):
        for at, pattern in enumerate(source.paths if source is not None else ()):
            said = collision(output, pattern)
            if said and source is not None:
                tree.add(("sources", index, "paths", at), said, where=f"sources.{source.name}.paths")


def _unfit(output: str) -> str | None:
    """Why nothing can be written to an output, with the mend; None where something can."""
    protocol = output.partition("://")[0] if "://" in output else ""
    if "::" in output:
        return "holds '::', a chained URL, which can only be read; give one folder or URL"
    if any(ord(letter) < 32 or letter == "\\" for letter in output):
        return "holds a backslash or a control character; choose a path without"
    if protocol == "memory":
        return "memory:// is another memory in each worker; give a folder or an object store"
    if protocol in _READ_ONLY:
        return f"nothing is written to {protocol}://; give a folder or an object store such as s3://BUCKET/FOLDER"
    if protocol:
        return _unfit_url(output, protocol)
    return None


def _unfit_url(output: str, protocol: str) -> str | None:
    import fsspec

    known = fsspec.available_protocols()
    if protocol not in known:
        return f"{protocol}:// is no kind of storage; {nearest(protocol, known, what='kinds')}"
    if protocol != "file" and any(letter in output for letter in _WILD):
        return "holds *, ? or [, which stores take for a pattern; choose a URL without"
    return None


def collision(output: str, pattern: str) -> str | None:
    """How a local input and a local output would run into each other, in words that name both; None where they do not.

    An input inside the output could be taken for a result; an input that takes in the output grows by every run.
    """
    if any(("://" in path and not path.startswith("file://")) or "::" in path for path in (output, pattern)):
        return None
    if "\0" in pattern:
        return None  # no path at all; listing the inputs says so
    here = os.path.realpath(output.removeprefix("file://"))
    given = os.path.abspath(pattern.removeprefix("file://"))
    parts = given.split("/")
    fixed = next((at for at, part in enumerate(parts) if any(letter in part for letter in _WILD)), len(parts))
    root, rest = os.path.realpath("/".join(parts[:fixed]) or "/"), parts[fixed:]
    if _below(root, here) is not None:
        return f"{pattern} lies in the folder of output: {output}; choose another output"
    inside = _below(here, root)
    if inside is not None and (
        any(_matches(rest, [*inside, *written.split("/")]) for written in _WRITTEN) if rest else _walked(root, inside)
    ):
        return f"{pattern} would also read what is written to output: {output}; choose another output"
    return None


def _walked(folder: str, inside: Sequence[str]) -> bool:
    """Whether a source that is a folder takes in what lies there; hidden files and folders are left out."""
    return os.path.isdir(folder) and not any(part.startswith(".") for part in inside)


def _below(path: str, folder: str) -> list[str] | None:
    """The parts of `path` below `folder`, none where they are the same; None where it is not inside."""
    if path == folder:
        return []
    start = folder.rstrip("/") + "/"
    return path[len(start) :].split("/") if path.startswith(start) else None


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a glob's parts match a path's, `**` standing for any number of them."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(pattern[1:], rest) for rest in _tails(parts))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(pattern[1:], parts[1:])


def _tails(parts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (parts[at:] for at in range(len(parts) + 1))
