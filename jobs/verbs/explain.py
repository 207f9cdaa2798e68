"""`gristmill explain STEP`: settings with types, defaults and bounds; rules with thresholds; where they come from."""

from __future__ import annotations

import json as json_format
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

import yaml

from jobs.errors import UserError, nearest
from jobs.steps import MIX, SOURCE, STEPS, SYNTH, TOKENS, TRAIN, load_target
from jobs.verbs.settings import Setting, settings_of, story_of

WIDTH = 110

SECTIONS = {
    "recipe": ("jobs.recipe_model:Settings", "the keys at the top of a recipe"),
    "source": (SOURCE, "an entry of sources:"),
    "tokens": (TOKENS, "the section tokens:"),
    "mix": (MIX, "the section mix:, and gristmill mix"),
    "constraints": ("mixing.optimum:Constraints", "mix.constraints"),
    "objective": ("mixing.optimum:Objective", "mix.objective"),
    "train": (TRAIN, "the section train:, and gristmill train pretrain"),
    "sft": ("train:Sft", "gristmill train sft"),
    "proxies": ("train:Proxies", "gristmill train proxies"),
    "synth": (SYNTH, "the section synth:, and gristmill synth"),
    "teacher": ("synth.teachers:TeacherSettings", "an entry of synth.teachers"),
    "selection": ("synth.selection:Selection", "synth.select"),
    "synth_export": ("synth.exports:Export", "gristmill synth export --settings"),
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
    presets: tuple[dict[str, Any], ...] = ()


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
    presets = tuple(_presets(cls().rules)) if name == "quality" else ()
    return Explained(name=name, scope=scope, story=story_of(cls), settings=settings, presets=presets)


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
    for preset in explained.presets:
        yield from _preset_lines(preset)


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


def _preset_lines(preset: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{preset['name']}, {'on' if preset['on'] else 'off'} by default: a document is dropped where"
    width = max(len(rule["rule"]) for rule in preset["rules"])
    for rule in preset["rules"]:
        sign, threshold = "<" if rule["bound"] == "min" else ">", rule["threshold"]
        limit = "is off" if threshold is None else f"{sign} {threshold:g}"
        yield f"  {rule['rule']:{width}}  {rule['signal']} {limit}: {rule['because']}"
    for key in ("source", "differs"):
        if preset[key]:
            yield from textwrap.wrap(f"{key}: {preset[key]}", WIDTH, initial_indent="  ", subsequent_indent="    ")


def _presets(default: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The presets of quality rules, those of the default first; their files are read as they are shipped."""
    folder = resources.files("filters").joinpath("presets")
    names = sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))
    for name in sorted(names, key=lambda name: (list(default).index(name) if name in default else len(default), name)):
        told = yaml.safe_load(folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
        rules = [
            {
                "rule": rule,
                "signal": said["signal"],
                "bound": "min" if "min" in said else "max",
                "threshold": said["min"] if "min" in said else said["max"],
                "because": said.get("because", ""),
            }
            for rule, said in told["rules"].items()
        ]
        sources = {key: told.get(key, "") for key in ("source", "differs")}
        yield {"name": name, "on": name in default, **sources, "rules": rules}
