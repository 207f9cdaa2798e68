"""The sections of a recipe made into objects (settings, sources, steps, tokens, ...), and the order of steps."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from jobs.errors import UserError, nearest
from jobs.recipe_lines import Path, Tree
from jobs.recipe_mistakes import note, shown
from jobs.recipe_mixture import check_mix, check_mixture
from jobs.recipe_model import KEYS, MAX_NAME, SECTIONS, Settings, StepEntry
from jobs.recipe_sets import step_address
from jobs.sizes import parse_size
from jobs.steps import MIX, SOURCE, STEPS, SYNTH, TOKENS, TRAIN, load_target

if TYPE_CHECKING:
    from ingest import Source
    from mixing.loop import Mix
    from synth.running import Synth
    from train import Pretrain, Tokens

_T = TypeVar("_T")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_MARKUP = ("html", "warc", "arc")
COMMON = ("step", "name", "domains")


def settings(tree: Tree) -> Settings | None:
    """The plain top-level values, or None with the mistakes noted."""
    plain = {key: value for key, value in tree.value.items() if key in KEYS and key not in SECTIONS}
    return construct(tree, (), "", Settings, plain)


def sources(tree: Tree) -> list[Source | None]:
    """Each entry of `sources:`, None where it is wrong."""
    entries = _entries(tree, "sources", "- {name: books, format: jsonl, paths: [books/*.jsonl.gz]}")
    loaded = _class(tree, ("sources",), "sources", SOURCE) if entries else None
    found: list[Source | None] = []  # in the places of `entries`
    seen: dict[str, Path] = {}
    for index, entry in enumerate(entries):
        path: Path = ("sources", index)
        name = entry.get("name") if isinstance(entry, dict) else None
        where = f"sources.{name}" if isinstance(name, str) else f"sources.{index + 1}"
        if not isinstance(entry, dict):
            tree.add(
                path,
                f"expected a mapping, got {shown(entry)}; write {{name: ..., format: ..., paths: [...]}}",
                where=where,
            )
        right = isinstance(entry, dict) and loaded is not None
        found.append(construct(tree, path, where, loaded, entry) if right and loaded is not None else None)
        if isinstance(name, str) and name in seen:
            tree.add(
                (*path, "name"),
                f"a source of this name stands on line {tree.line(seen[name])}; choose another",
                where=where,
            )
        elif isinstance(name, str):
            seen[name] = path
    return found


def steps(tree: Tree, found: Sequence[Source | None]) -> tuple[StepEntry, ...]:
    """Each entry of `steps:` that is right; their names and order are checked too."""
    entries = _entries(tree, "steps", "- step: extract")
    domains = _domains(tree)
    made = [_step(tree, ("steps", index), entry, domains) for index, entry in enumerate(entries)]
    _check_names(tree, entries)
    _check_order(tree, entries, [source for source in found if source is not None])
    return tuple(entry for entry in made if entry is not None)


def tokens(tree: Tree) -> Tokens | None:
    """The `tokens:` section, None where there is none or it is wrong."""
    made: Tokens | None = _section(tree, "tokens", TOKENS)
    return made


def mix(tree: Tree) -> Mix | None:
    """The `mix:` section, None where there is none or it is wrong."""
    _check_needs(tree, "mix", "there are no tokens to find a mixture of")
    made: Mix | None = _section(tree, "mix", MIX)
    if made is not None:
        check_mix(tree, _domains(tree))
    return made


def train(tree: Tree) -> Pretrain | None:
    """The `train:` section, None where there is none or it is wrong."""
    _check_needs(tree, "train", "there is nothing to train on")
    made: Pretrain | None = _section(tree, "train", TRAIN)
    if made is not None:
        check_mixture(tree, _domains(tree))
    return made


def synth(tree: Tree) -> Synth | None:
    """The `synth:` section, None where there is none or it is wrong."""
    if tree.value.get("synth", False) is not False and "://" in str(tree.value.get("output", "")):
        what = "teachers' replies are stored in a local folder only; run it apart: gristmill synth run --help"
        tree.add(("synth",), what, where="synth")
    made: Synth | None = _section(tree, "synth", SYNTH)
    return made


def _check_needs(tree: Tree, key: str, lacks: str) -> None:
    wanted = tree.value.get(key, False) is not False
    if wanted and tree.value.get("tokens", False) is False:
        tree.add((key,), f"{lacks}; add a section tokens:", where=key)
    if wanted and "://" in str(tree.value.get("output", "")):
        apart = {"mix": "gristmill mix run --help", "train": "gristmill train pretrain --help"}[key]
        what = f"training writes to a local folder only; train from the token shards: {apart}"
        tree.add((key,), what, where=key)


def _section(tree: Tree, key: str, target: str) -> Any:
    section = tree.value.get(key)
    if key not in tree.value or section is False:
        return None
    if not isinstance(section, dict) and section is not None:
        tree.add((key,), f"expected a mapping, got {shown(section)}", where=key)
        return None
    loaded = _class(tree, (key,), key, target)
    return None if loaded is None else construct(tree, (key,), key, loaded, section or {})


def construct(tree: Tree, path: Path, where: str, settings_class: type[_T], values: dict[str, Any]) -> _T | None:
    """Make settings of plain values, strictly: no text for a number, no number for a flag. Mistakes are noted."""
    try:
        # JSON is the strict mode in which a list may still become a tuple.
        return TypeAdapter(settings_class).validate_json(json.dumps(_sized(values)), strict=True)
    except ValidationError as error:
        note(tree, path, where, settings_class, error.errors(include_url=False))
    except ImportError as error:
        tree.add(path, f"needs the package {error.name}, which is not installed; see: gristmill doctor", where=where)
    except (OSError, ValueError, UserError) as error:
        tree.add(path, str(error), where=where)
    return None


def _sized(values: Any) -> Any:
    """The values with sizes as numbers: `..._bytes: 64MiB` may be written in every section. Others stay as they are."""
    if isinstance(values, dict):
        return {key: _size(value) if str(key).endswith("_bytes") else _sized(value) for key, value in values.items()}
    return [_sized(value) for value in values] if isinstance(values, list) else values


def _size(value: Any) -> Any:
    try:
        return parse_size(value)
    except ValueError:
        return value


def _class(tree: Tree, path: Path, where: str, target: str) -> type[Any] | None:
    try:
        return load_target(target)
    except UserError as error:
        tree.add(path, str(error), where=where)
        return None


def _entries(tree: Tree, key: str, example: str) -> list[Any]:
    entries = tree.value.get(key)
    if isinstance(entries, list) and entries:
        return entries
    if entries is None or entries == []:
        tree.add(
            (key,),
            f"{'is empty' if key in tree.value else 'is missing'}; begin with {key}: and a line {example}",
            where=key,
        )
    else:
        tree.add((key,), f"expected a list, got {shown(entries)}; begin each entry with a dash: {example}", where=key)
    return []


def _domains(tree: Tree) -> set[str]:
    entries = tree.value.get("sources")
    named = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return {said for entry in named if isinstance(said := entry.get("domain") or entry.get("name"), str)}


def _step(tree: Tree, path: Path, entry: Any, domains: set[str]) -> StepEntry | None:
    position = int(path[-1]) + 1
    if isinstance(entry, str) and entry in STEPS:
        tree.add(path, f"expected a mapping, got {entry!r}; write - step: {entry}", where=f"steps.{position}")
        return None
    if not isinstance(entry, dict):
        tree.add(path, f"expected a mapping, got {shown(entry)}; write - step: KIND", where=f"steps.{position}")
        return None
    kind = entry.get("step")
    if not isinstance(kind, str) or kind not in STEPS:
        what = "has no kind; begin it with - step: KIND" if kind is None else f"unknown step {shown(kind)}"
        tree.add((*path, "step"), f"{what}; {nearest(str(kind), STEPS, what='steps')}", where=f"steps.{position}")
        return None
    name = entry.get("name", kind)
    where = name if isinstance(name, str) else kind
    only = _common(tree, path, where, entry, domains)
    loaded = _class(tree, path, where, STEPS[kind].target)
    values = {key: value for key, value in entry.items() if key not in COMMON}
    step = None if loaded is None else construct(tree, path, where, loaded, values)
    if step is None or not isinstance(name, str):
        return None
    return StepEntry(kind=kind, name=name, step=step, domains=only, line=tree.lines.get(path, 0))


def _common(tree: Tree, path: Path, where: str, entry: dict[str, Any], domains: set[str]) -> tuple[str, ...] | None:
    kind, only = str(entry["step"]), entry.get("domains")
    if only is None:
        return None
    here = (*path, "domains")
    if kind == "extract" or STEPS[kind].scope == "corpus":
        reads = "reads every source" if kind == "extract" else "compares all documents with each other"
        tree.add(here, f"does not apply: {kind} {reads}; remove domains:", where=f"{where}.domains")
        return None
    if not isinstance(only, list) or not only or not all(isinstance(domain, str) for domain in only):
        tree.add(
            here,
            f"expected a list of domains, got {shown(only)}; write [{', '.join(sorted(domains))}]",
            where=f"{where}.domains",
        )
        return None
    for index, domain in enumerate(only):
        if domain not in domains:
            what = f"no source has the domain {domain!r}; {nearest(domain, domains, what='domains')}"
            tree.add((*here, index), what, where=f"{where}.domains")
    return tuple(only)


def _check_names(tree: Tree, entries: list[Any]) -> None:
    addresses = [step_address(entry) for entry in entries]
    counts = Counter(address for address in addresses if address in STEPS or address is not None)
    first: dict[str, int] = {}
    for index, (entry, address) in enumerate(zip(entries, addresses, strict=True)):
        if not isinstance(entry, dict):
            continue
        said, kind = entry.get("name"), entry.get("step")
        if "name" in entry:
            _check_name(tree, ("steps", index, "name"), said, kind)
        if address is None or kind not in STEPS:
            continue
        if counts[address] > 1 and address in first:
            line = tree.line(("steps", first[address]))
            what = f"stands twice (first on line {line}); give one of them a name: of its own"
            tree.add(("steps", index), what, where=address)
        first.setdefault(address, index)


def _check_name(tree: Tree, path: Path, name: Any, kind: Any) -> None:
    if isinstance(name, str) and len(name) > MAX_NAME:
        tree.add(path, f"is {len(name)} letters long; a name, which is a folder's too, has {MAX_NAME}", where="name")
    elif not isinstance(name, str) or not _NAME.fullmatch(name):
        tree.add(path, f"{shown(name)} is no step name; use small letters, digits, _ and -", where="name")
    elif name in (*KEYS, "read") or (name in STEPS and name != kind):
        what = (
            "another kind of step" if name in STEPS else "a key of the recipe" if name in KEYS else "a step of each run"
        )
        tree.add(path, f"{name!r} is {what}, so the two could not be told apart; choose another", where="name")


def _check_order(tree: Tree, entries: list[Any], found: list[Source]) -> None:
    kinds = [entry.get("step") if isinstance(entry, dict) else None for entry in entries]
    extracts = [index for index, kind in enumerate(kinds) if kind == "extract"]
    markup = [source for source in found if source.format in _MARKUP]
    if entries and markup and not extracts:
        what = f"source {markup[0].name} is {markup[0].format}; add - step: extract as the first step"
        tree.add(("steps",), what, where="steps")
    if extracts and extracts[0] != 0:
        what = "must be the first step, since the others read its text; move it up"
        tree.add(("steps", extracts[0]), what, where="extract")
    for index in extracts[1:]:
        tree.add(("steps", index), "stands twice; a document is extracted once, remove one", where="extract")
