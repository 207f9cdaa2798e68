"""From a request's body to what is said: a pure function of the body and the settings."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from synth.errors import SynthError
from synth.requests import digest
from synth.simulator.settings import Rule, SimulatorSettings
from synth.simulator.skill import answers, drawn, pick, probabilities
from synth.simulator.speech import CLOSING, Said, as_json, say

Script = Callable[[Mapping[str, Any], float], "str | None"]
GROUP = re.compile(r"\{\{(\w+)\}\}")


class Answerer:
    """Says what a simulated teacher says. Raises SynthError for a script that is not there."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self._settings = settings
        self._marker = re.compile(settings.marker)
        self._rules = [(re.compile(rule.match, re.S | re.M), rule) for rule in settings.rules]
        self._by_text = [(known.prompt, name) for name, known in settings.known.items() if known.prompt]
        self._script = _script(settings.script)
        self._named = lru_cache(maxsize=4096)(self._find)

    def say(self, body: Mapping[str, Any]) -> Said:
        """What is said to a body: by the script, a rule, as an item that is known, by its schema, or otherwise."""
        settings = self._settings
        number = drawn("reply", settings.seed, digest(body))
        last, others = texts(body)
        if self._script is not None and (told := self._script(body, number)) is not None:
            return Said(text=told)
        for pattern, rule in self._rules:
            if (found := pattern.search(last)) and re.search(rule.system, others, re.S):
                return _by_rule(rule, found, number)
        if name := self._named(last) or self._named(others):
            return self._known(body, name, number)
        if (schema := (body.get("response_format") or {}).get("json_schema")) is not None:
            return Said(text=as_json(schema.get("schema")))
        if settings.otherwise:
            return Said(text=settings.otherwise)
        return self._spoken(body, str(int(number * 1000)), 0.5, number)

    def _known(self, body: Mapping[str, Any], name: str, number: float) -> Said:
        settings, known = self._settings, self._settings.known[name]
        temperature = float(body.get("temperature", 1.0))
        draw: list[Any] = [settings.seed, name, number]
        if settings.speech.duplicates and drawn("duplicate", *draw) < settings.speech.duplicates:
            draw = [settings.seed, name, temperature]
        chances = probabilities(settings.skill, known.skill, temperature)
        answer = answers(known, settings.skill.modes)[pick(chances, drawn("mode", *draw))]
        return self._spoken(body, answer, known.skill, *draw)

    def _spoken(self, body: Mapping[str, Any], answer: str, skill: float, *draw: Any) -> Said:
        speech = self._settings.speech
        begun = _begun(body)
        if CLOSING in begun:
            # The reasoning was closed for it: what is left is to answer.
            return say(replace(speech, reasoning="none"), answer, skill, *draw)
        if begun and speech.reasoning == "tags":
            return say(replace(speech, reasoning="closing"), answer, skill, *draw)
        return say(speech, answer, skill, *draw)

    def _find(self, text: str) -> str:
        """Name of the item that a text is about, "" for none."""
        for found in self._marker.finditer(text):
            if found[1] in self._settings.known:
                return str(found[1])
        return next((name for prompt, name in self._by_text if prompt in text), "")


def texts(body: Mapping[str, Any]) -> tuple[str, str]:
    """The last message that the teacher did not write itself, and all others as one text."""
    if "messages" not in body:
        return _text(body.get("prompt")), ""
    messages = [message for message in body["messages"] if isinstance(message, Mapping)]
    at = next((at for at in reversed(range(len(messages))) if messages[at].get("role") != "assistant"), -1)
    others = [_text(message.get("content")) for number, message in enumerate(messages) if number != at]
    return _text(messages[at].get("content")) if messages else "", "\n".join(others)


def _text(content: Any) -> str:
    """Of a message: a text, or a list of parts that hold texts."""
    if isinstance(content, list):
        return "\n".join(_text(part.get("text")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _begun(body: Mapping[str, Any]) -> str:
    """What the reply goes on from, "" where it is a turn of its own."""
    if "messages" in body:
        return _text(body["messages"][-1].get("content")) if body.get("continue_final_message") else ""
    return _text(body.get("prompt"))


def _by_rule(rule: Rule, found: re.Match[str], number: float) -> Said:
    if rule.probabilities:
        total = sum(rule.probabilities.values()) or 1.0
        chances = tuple(chance / total for chance in rule.probabilities.values())
        return Said(
            text=list(rule.probabilities)[pick(chances, number)], reasoning=rule.reasoning or None,
            finish_reason=rule.finish_reason, alternatives=dict(zip(rule.probabilities, chances, strict=True)),
        )  # fmt: skip
    template = rule.reply[int(number * len(rule.reply))]

    def filled(group: re.Match[str]) -> str:
        name = group[1]
        if name == "draw":
            return str(int(number * 1_000_000))
        try:
            return found[int(name) if name.isdigit() else name] or ""
        except IndexError:
            return group[0]

    finish = "tool_calls" if rule.tool and rule.finish_reason == "stop" else rule.finish_reason
    text = GROUP.sub(filled, template)
    return Said(text=text, reasoning=rule.reasoning or None, finish_reason=finish, tool=rule.tool)


def _script(named: str) -> Script | None:
    if not named:
        return None
    path, _, function = named.rpartition(":")
    spec = importlib.util.spec_from_file_location("simulator_script", path) if Path(path).is_file() else None
    if spec is None or spec.loader is None:
        raise SynthError(f"script: no file {path}; write FILE.py:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    script: Script | None = getattr(module, function, None)
    if not callable(script):
        raise SynthError(f"script: {path} has no function {function}; write FILE.py:FUNCTION")
    return script
