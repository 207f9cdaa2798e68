"""Presets: files of thresholds on signals, and the rules that come of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import yaml

from filters.signals import MEANINGS

FOLDER = files("filters").joinpath("presets")
PRESETS = tuple(sorted(entry.name.removesuffix(".yaml") for entry in FOLDER.iterdir() if entry.name.endswith(".yaml")))

Overrides = Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One threshold on one signal; a text fails below a "min" or above a "max". A threshold of None is off, 0 is 0."""

    preset: str
    name: str
    signal: str
    bound: Literal["min", "max"]
    threshold: float | None
    because: str

    @property
    def code(self) -> str:
        return f"{self.preset}.{self.name}"

    def failed(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        if self.threshold is None:
            return np.zeros(len(values), np.bool_)
        failed: npt.NDArray[np.bool_] = values < self.threshold if self.bound == "min" else values > self.threshold
        return failed


def load_rules(names: Sequence[str], overrides: Overrides | None = None) -> tuple[Rule, ...]:
    """The rules of presets in order, off ones included. A preset is a name out of PRESETS or a path to a YAML file.

    overrides: {preset: {rule: threshold}}. Raises ValueError that names the preset, rule or signal that is unknown.
    """
    presets = {preset_name(name): name for name in names}
    if len(presets) < len(names):
        raise ValueError(f"rules {', '.join(names)}: a preset stands twice; name it once")
    for preset in overrides or {}:
        if preset not in presets:
            raise ValueError(f"{preset}: thresholds for a preset that is not among the rules ({', '.join(presets)})")
    rules: list[Rule] = []
    for preset, name in presets.items():
        rules += _overridden(_preset(name), (overrides or {}).get(preset, {}))
    return tuple(rules)


def preset_name(name: str) -> str:
    """What a preset's rules are called by: its name, or its file's name."""
    return Path(name).stem if is_file(name) else name


def is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _overridden(rules: tuple[Rule, ...], thresholds: Mapping[str, float | None]) -> list[Rule]:
    known = {rule.name: rule for rule in rules}
    for name, threshold in thresholds.items():
        if name not in known:
            raise ValueError(f"{rules[0].preset}.{name}: no such rule{_nearest(name, known)}")
        known[name] = _with_threshold(known[name], threshold)
    return list(known.values())


def _with_threshold(rule: Rule, threshold: float | None) -> Rule:
    return Rule(
        preset=rule.preset,
        name=rule.name,
        signal=rule.signal,
        bound=rule.bound,
        threshold=None if threshold is None else float(threshold),
        because=rule.because,
    )


@cache
def _preset(name: str) -> tuple[Rule, ...]:
    if not is_file(name) and name not in PRESETS:
        raise ValueError(
            f"{name}: no such preset{_nearest(name, PRESETS)}. A preset of your own is the path of a .yaml file"
        )
    path = Path(name) if is_file(name) else FOLDER.joinpath(f"{name}.yaml")
    try:
        rules = yaml.safe_load(path.read_text(encoding="utf-8"))["rules"].items()
    except OSError as error:
        raise ValueError(f"{name}: cannot read the preset: {error.strerror}") from error
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{name}: a preset needs `rules:`, each with a signal and min or max") from error
    return tuple(_rule(preset_name(name), rule, settings) for rule, settings in rules)


def _rule(preset: str, name: str, settings: Any) -> Rule:
    where = f"{preset}.{name}"
    if not isinstance(settings, dict) or "signal" not in settings or ("min" in settings) == ("max" in settings):
        raise ValueError(f"{where}: a rule needs a signal and one of min and max")
    signal, bound = settings["signal"], "min" if "min" in settings else "max"
    if signal not in MEANINGS:
        raise ValueError(f"{where}: no signal {signal!r}{_nearest(str(signal), MEANINGS)}")
    threshold = settings[bound]
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
        raise ValueError(f"{where}: {bound} is {threshold!r}, not a number or null")
    return Rule(
        preset=preset,
        name=name,
        signal=signal,
        bound="min" if bound == "min" else "max",
        threshold=None if threshold is None else float(threshold),
        because=str(settings.get("because", "")),
    )


def _nearest(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f" (there are {', '.join(known)})"
