"""Tools as a state machine that is written down in a row: no program of the row is ever run.

A row's options:

    tools       functions as OpenAI's format declares them: {"type": "function", "function": {name, parameters}}
    state       a JSON object
    behaviour   of each function a list of cases, of which the first whose conditions all hold is taken:
                {"when": [condition], "do": [effect], "result": JSON}
    goal        conditions on the state in the end

A condition has a `path` into the state, or `calls` with a function's name for how often it was called without an error,
and one of is, is_not, at_least, at_most, contains, exists. An effect has a `path` and one of set, add, append, remove.
A path's parts are joined by dots. "$name" stands for an argument, as a part of a path or as a value; a result may also
say "$state.path". "$5" is five dollars.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from synth.items import Item

TESTS: Final = frozenset({"is", "is_not", "at_least", "at_most", "contains", "exists"})
CHANGES: Final = frozenset({"set", "add", "append", "remove"})
MOST_CHARACTERS: Final = 20_000
"""Of a result, and of a state ten times as many: arguments come from a model, and appending has no end."""

MISSING: Final = object()
_ARGUMENT: Final = re.compile(r"\$[^\W\d]\w*")
Json = Any
Case = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a row says of its tools. schemas: of each function's arguments."""

    tools: tuple[Mapping[str, Any], ...]
    schemas: Mapping[str, Mapping[str, Any]]
    state: Mapping[str, Any]
    behaviour: Mapping[str, tuple[Case, ...]]
    goal: tuple[Mapping[str, Any], ...]


@dataclass(kw_only=True)
class World:
    """A state that calls have changed. calls: of each function, those without an error."""

    state: dict[str, Any]
    calls: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, machine: Machine) -> World:
        return cls(state=copy.deepcopy(dict(machine.state)))

    def holds(self, condition: Mapping[str, Any], arguments: Mapping[str, Any] | None = None) -> bool:
        known = arguments or {}
        if "calls" in condition:
            found: Any = self.calls.get(condition["calls"], 0)
        else:
            found = self._found(condition["path"], known)
        test = next(iter(condition.keys() & TESTS))
        return _tested(test, found, self.valued(condition[test], known))

    def call(self, name: str, arguments: Mapping[str, Any], cases: tuple[Case, ...]) -> Json:
        """The result of a call; {"error": ...} where no case is for it, or the state would outgrow its bound."""
        for case in cases:
            if all(self.holds(one, arguments) for one in case.get("when", ())):
                before = copy.deepcopy(self.state)
                for effect in case.get("do", ()):
                    self._do(effect, arguments)
                result = self.valued(case.get("result", {"ok": True}), arguments)
                if size(self.state) > 10 * MOST_CHARACTERS or size(result) > MOST_CHARACTERS:
                    self.state = before
                    return {"error": "too large"}
                self.count(name, result)
                return copy.deepcopy(result)
        return {"error": "not possible"}

    def count(self, name: str, result: Json) -> None:
        """A call that gave this result."""
        failed = isinstance(result, Mapping) and "error" in result
        self.calls[name] = self.calls.get(name, 0) + (not failed)

    def valued(self, value: Json, arguments: Mapping[str, Any]) -> Json:
        """A value with arguments and parts of the state put in."""
        if isinstance(value, str) and value.startswith("$state."):
            found = self._found(value.removeprefix("$state."), arguments)
            return None if found is MISSING else found
        if isinstance(value, str) and _ARGUMENT.fullmatch(value):
            return arguments.get(value[1:])
        if isinstance(value, Mapping):
            return {key: self.valued(inner, arguments) for key, inner in value.items()}
        return [self.valued(inner, arguments) for inner in value] if isinstance(value, list | tuple) else value

    def _found(self, path: str, arguments: Mapping[str, Any]) -> Any:
        at: Any = self.state
        for part in _parts(path, arguments):
            at = _inside(at, part)
        return at

    def _do(self, effect: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """What does not fit the state as it is changes nothing."""
        *way, last = _parts(effect["path"], arguments)
        at: Any = self.state
        change = next(iter(effect.keys() & CHANGES))
        for part in way:
            if change in ("set", "append") and isinstance(at, dict):
                at.setdefault(part, {})
            at = _inside(at, part)
        if not isinstance(at, dict):
            return
        value = copy.deepcopy(self.valued(effect[change], arguments))
        match change:
            case "set":
                at[last] = value
            case "remove":
                at.pop(last, None)
            case "append" if isinstance(at.setdefault(last, []), list):
                at[last].append(value)
            case "add" if _number(at.get(last)) and _number(value):
                at[last] += value


def _parts(path: str, arguments: Mapping[str, Any]) -> list[str]:
    """An argument is one part, whatever dots it holds."""
    return [_key(arguments.get(part[1:])) if _ARGUMENT.fullmatch(part) else part for part in path.split(".")]


def _key(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _inside(at: Any, part: str) -> Any:
    if isinstance(at, dict):
        return at.get(part, MISSING)
    if isinstance(at, list) and part.isascii() and part.isdecimal() and len(part) < 7 and int(part) < len(at):
        return at[int(part)]
    return MISSING


def _tested(test: str, found: Any, value: Any) -> bool:
    there = found is not MISSING
    match test:
        case "exists":
            return there == bool(value)
        case "is":
            return there and _equal(found, value)
        case "is_not":
            return not (there and _equal(found, value))
        case "contains":
            if isinstance(found, str):
                return isinstance(value, str) and value in found
            return isinstance(found, list | dict) and any(_equal(one, value) for one in found)
        case "at_least":
            return _number(found) and _number(value) and bool(found >= value)
        case _:
            return _number(found) and _number(value) and bool(found <= value)


def _equal(first: Any, second: Any) -> bool:
    """As JSON has it: true is not 1."""
    return isinstance(first, bool) == isinstance(second, bool) and bool(first == second)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def size(value: Any) -> int:
    """Characters of a value's JSON."""
    return len(json.dumps(value, ensure_ascii=False))


def machine_of(item: Item, needs_behaviour: bool) -> Machine | str:
    """What a row's options say, or the reason why they cannot be read.

    needs_behaviour: every function must have its cases here, since no teacher plays it.
    """
    told = item.options
    tools, state, goal = told.get("tools"), told.get("state", {}), told.get("goal", ())
    schemas = _schemas(tools)
    if schemas is None:
        return "item.bad_tools"
    if not isinstance(state, Mapping):
        return "item.bad_state"
    behaviour, first = told.get("behaviour", {}), next(iter(schemas))
    if not isinstance(behaviour, Mapping) or not all(map(_cases_sound, behaviour.values())):
        return "item.bad_behaviour"
    if needs_behaviour and set(schemas) - set(behaviour):
        return "item.no_behaviour"
    if not _all_sound(goal, TESTS) or any(one.get("calls", first) not in schemas for one in goal):
        return "item.bad_goal"
    if not goal and not item.verifier:
        return "item.no_checker"
    cases = {name: tuple(own) for name, own in behaviour.items()}
    return Machine(tools=tuple(tools or ()), schemas=schemas, state=state, behaviour=cases, goal=tuple(goal))


def _schemas(tools: Any) -> dict[str, Mapping[str, Any]] | None:
    if not isinstance(tools, list | tuple) or not tools:
        return None
    made: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        schema = function.get("parameters", {}) if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not name or name in made or not isinstance(schema, Mapping):
            return None
        made[name] = schema
    return made


def _cases_sound(cases: Any) -> bool:
    return isinstance(cases, list | tuple) and all(
        isinstance(case, Mapping)
        and set(case) <= {"when", "do", "result"}
        and _all_sound(case.get("when", ()), TESTS)
        and _all_sound(case.get("do", ()), CHANGES)
        for case in cases
    )


def _all_sound(rows: Any, words: frozenset[str]) -> bool:
    return isinstance(rows, list | tuple) and all(_sound(one, words) for one in rows)


def _sound(row: Any, words: frozenset[str]) -> bool:
    if not isinstance(row, Mapping) or len(row) != 2 or len(row.keys() & words) != 1:
        return False
    place = row.get("path") or (row.get("calls") if words is TESTS else None)
    return isinstance(place, str) and bool(place)
