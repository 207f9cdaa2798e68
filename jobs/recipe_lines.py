"""YAML with line numbers: plain values, the line each came from, and every mistake of form at once.

Plain scalars are read as YAML 1.2 does: only `true` and `false` are booleans, so that the language `no` stays text.
`${NAME}` takes an environment variable (`$${NAME}` stands for itself); anchors, aliases and tags are refused.
"""

from __future__ import annotations

import copy
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from jobs.errors import MistakesError

Path = tuple[str | int, ...]

MAX_BYTES = 1 << 18
MAX_DEPTH = 32
_LAST_LINE = 1 << 30

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
_HEX = re.compile(r"0x[0-9A-Fa-f]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(_[0-9]+)*(\.[0-9]*|(?=[eE])))([eE][-+]?[0-9]+)?")
_VARIABLE = re.compile(r"(\$?)\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(kw_only=True)
class Tree:
    """A recipe as plain values. `lines` holds the line of each path, `origins` the --set that a path came from."""

    label: str
    value: dict[str, Any] = field(default_factory=dict)
    lines: dict[Path, int] = field(default_factory=dict)
    raw: dict[Path, str] = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    mistakes: list[tuple[int, str]] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of `path`, or of the nearest thing around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 1

    def add(self, path: Path, what: str, *, where: str = "") -> None:
        """Note a mistake: `where` is what the reader calls the place, `what` is wrong and what would be right."""
        said = f"{where}: {what}" if where else what
        for end in range(len(path), 0, -1):
            if path[:end] in self.origins:
                self.mistakes.append((_LAST_LINE, f"{self.origins[path[:end]]}: {said}"))
                return
        line = self.line(path)
        place = f"{self.label}:{line}" if self.lines else self.label
        self.mistakes.append((line, f"{place}: {said}"))

    def check(self) -> None:
        """Raise MistakesError if any mistake was noted."""
        if self.mistakes:
            raise MistakesError([said for _, said in sorted(self.mistakes, key=lambda mistake: mistake[0])])


def parse(content: bytes, label: str, *, begin: str = "name:, output:, sources: and steps:") -> Tree:
    """Read the bytes of a recipe or a settings file, which begins with the keys `begin`.

    Raises MistakesError where nothing can be read; lesser mistakes wait in the tree.
    """
    if len(content) > MAX_BYTES:
        raise MistakesError([f"{label}:1: is {len(content):,} bytes, larger than a recipe can be ({MAX_BYTES:,})"])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MistakesError(
            [f"{label}:{line}: byte {content[error.start]:#04x} is not UTF-8; save the recipe as UTF-8"]
        ) from None
    tree = Tree(label=label)
    node = _compose(text, label)
    if node is None:
        raise MistakesError([f"{label}:1: is empty; begin with {begin}"])
    if not isinstance(node, yaml.MappingNode):
        raise MistakesError([f"{label}:{node.start_mark.line + 1}: expected a mapping of keys; begin with {begin}"])
    tree.value = _plain(node, (), tree)
    return tree


def parse_value(text: str, path: Path, tree: Tree) -> Any:
    """The value of one `--set`, read as YAML. A mistake is noted in the tree, and None returned."""
    try:
        node = _compose(text, "value")
    except MistakesError as error:
        tree.add(path, str(error).removeprefix("value:1: "))
        return None
    return None if node is None else _plain(node, path, tree)


def tree_of(document: Mapping[str, Any], label: str) -> Tree:
    """A tree of plain values that no file holds: a recipe made in a notebook, or the one a finished run remembers."""
    return Tree(label=label, value=copy.deepcopy(dict(document)))


def _compose(text: str, label: str) -> yaml.Node | None:
    try:
        _refuse_exotic(text, label)
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise MistakesError([f"{label}:{line}: {_form(error, line)}"]) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise MistakesError([f"{label}:{line}: a control character ({error.character:#04x}); remove it"]) from None
    return node


def _form(error: yaml.MarkedYAMLError, line: int) -> str:
    problem = str(error.problem or error.context)
    if "'\\t'" in problem:
        return "not YAML: a tab; indent with spaces"
    if problem.startswith("but found another document"):
        return "not YAML: a second document; a recipe is one, remove the ---"
    mark = error.context_mark
    begun = line if mark is None else mark.line + 1
    return f"not YAML: {problem}" + (f" ({error.context} that begins on line {begun})" if begun != line else "")


def _refuse_exotic(text: str, label: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise MistakesError([f"{label}:{line}: nested more than {MAX_DEPTH} deep; no recipe needs that"])
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise MistakesError(
                [f"{label}:{line}: anchors (&) and aliases (*) are not used in recipes; write it out or quote it"]
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise MistakesError(
                [f"{label}:{line}: tags such as {tag} are not used in recipes; remove it or quote the text"]
            )


def _plain(node: yaml.Node, path: Path, tree: Tree) -> Any:
    tree.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, index), tree) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, tree)
    return _scalar(node, path, tree)


def _mapping(node: yaml.MappingNode, path: Path, tree: Tree) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            tree.mistakes.append((line, f"{tree.label}:{line}: a key must be one word, not a list or mapping"))
            continue
        key = str(key_node.value)
        here = (*path, key)
        if key in found:
            what = f"{tree.label}:{line}: {key}: stands twice (first on line {tree.lines[here]}); remove one"
            tree.mistakes.append((line, what))
            continue
        tree.lines[here] = line
        found[key] = _plain(value_node, here, tree)
    return found


def _scalar(node: yaml.Node, path: Path, tree: Tree) -> Any:
    text = _substituted(str(node.value), path, tree)
    if getattr(node, "style", None) is not None:
        return text
    tree.raw[path] = text
    return resolve(text)


def resolve(text: str) -> Any:
    """The value of an unquoted scalar by the YAML 1.2 core schema, with `_` allowed between digits."""
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text[0] in "tT"
    if len(text) < 20 and _INTEGER.fullmatch(text):
        return int(text)
    if len(text) < 20 and _HEX.fullmatch(text):
        return int(text, 16)
    if len(text) < 64 and _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def _substituted(text: str, path: Path, tree: Tree) -> str:
    where = ".".join(part if isinstance(part, str) else str(part + 1) for part in path)

    def value(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return match[0][1:]
        if not _NAME.fullmatch(name):
            what = "names no environment variable; only ${NAME} is replaced, $${...} stands for itself"
            tree.add(path, f"{match[0]} {what}", where=where)
        elif name not in os.environ:
            tree.add(path, f"${{{name}}} is not set in the environment; try: export {name}=...", where=where)
        else:
            return os.environ[name]
        return match[0]

    return _VARIABLE.sub(value, text)
