"""`gristmill explain STEP`: settings with types, defaults and bounds; rules with thresholds; where they come from."""

from __future__ import annotations

import json as json_format
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jobs.errors import UserError, nearest
from jobs.steps import SOURCE, STEPS, TOKENS, load_target
from jobs.verbs.settings import Setting, settings_of, story_of

WIDTH = 110

SECTIONS = {
    "recipe": ("jobs.recipe_model:Settings", "the keys at the top of a recipe"),
    "source": (SOURCE, "an entry of sources:"),
    "tokens": (TOKENS, "the section tokens:"),
}
COMMON = (
    Setting(
        name="name", type="text", default="the kind", bounds="", meaning="What the step is called; unique in a recipe."
    ),
    Setting(
        name="domains",
        type="list of text or nothing",
        default="null",
        bounds="",
        meaning="Only rows of these mixing domains go through the step; others pass untouched.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Explained:
    """All that is known about one kind of step or section."""

    name: str
    scope: str
    story: str
    settings: tuple[Setting, ...]
    rules: tuple[dict[str, Any], ...] = ()


def run(step: str | None = None, *, json: bool = False) -> int:
    """Print one step's explanation, or the list of all. Raises UserError for a step that does not exist."""
    if step is None:
        listed = list(listing())
        print(json_format.dumps(listed, indent=2) if json else "\n".join(_list_lines(listed)))
        return 0
    explained = explain(step)
    print(json_format.dumps(asdict(explained), indent=2) if json else "\n".join(lines(explained)))
    return 0


def listing() -> Iterator[dict[str, str]]:
    """Each kind of step and each section of a recipe: name, scope, summary."""
    for name, kind in STEPS.items():
        yield {"name": name, "scope": kind.scope, "summary": kind.summary}
    for name, (_, summary) in SECTIONS.items():
        yield {"name": name, "scope": "recipe", "summary": summary}


def explain(name: str) -> Explained:
    """What is known about a kind of step, or a section of a recipe."""
    if name in SECTIONS:
        cls, scope = load_target(SECTIONS[name][0]), "recipe"
    elif name in STEPS:
        cls, scope = STEPS[name].load(), STEPS[name].scope
    else:
        raise UserError(
            f"there is no step {name!r}; {nearest(name, [*STEPS, *SECTIONS], what='steps')} See: gristmill explain"
        )
    common = COMMON[: 2 if scope == "document" and name != "extract" else 1] if name in STEPS else ()
    settings = (*settings_of(cls), *common)
    return Explained(name=name, scope=scope, story=story_of(cls), settings=settings, rules=tuple(_rules(name, cls)))


def lines(explained: Explained) -> Iterator[str]:
    """The explanation for a terminal."""
    told = {
        "document": "one document at a time",
        "corpus": "the whole corpus",
        "recipe": "part of a recipe",
    }[explained.scope]
    yield f"{explained.name}: {told}"
    yield ""
    for paragraph in explained.story.split("\n\n"):
        yield from textwrap.wrap(" ".join(paragraph.split()), WIDTH)
        yield ""
    yield "settings"
    width = max((len(setting.name) for setting in explained.settings), default=0)
    for setting in explained.settings:
        yield from _setting_lines(setting, width)
    if explained.rules:
        yield ""
        yield "rules: a document is dropped where"
        longest = max(len(rule["rule"]) for rule in explained.rules)
        for rule in explained.rules:
            yield f"  {rule['rule']:{longest}}  {rule['drops']}"


def _setting_lines(setting: Setting, width: int) -> Iterator[str]:
    bounds = f", {setting.bounds}" if setting.bounds else ""
    yield f"  {setting.name:{width}}  {setting.default}   ({setting.type}{bounds})"
    indent = " " * (width + 4)
    yield from textwrap.wrap(setting.meaning, WIDTH, initial_indent=indent, subsequent_indent=indent)


def _list_lines(listed: list[dict[str, str]]) -> Iterator[str]:
    width = max(len(item["name"]) for item in listed)
    for item in listed:
        yield f"{item['name']:{width}}  {item['scope']:8}  {item['summary']}"
    yield ""
    yield "one of them: gristmill explain STEP"


def _rules(name: str, cls: type[Any]) -> Iterator[dict[str, Any]]:
    del name, cls
    yield from ()
