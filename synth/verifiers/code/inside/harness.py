"""Runs tests that are Python text, in a process apart from the program that they test.

The tests see the program's functions as stand-ins here, which ask the program's process over pipes that lead through
the verifier. What comes back are plain values, made here; an object of the program's own stays there, is held by
number, and takes part in no comparison. Whether the tests passed is said with a number that the program never sees.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import os
import sys
import types

from synth.verifiers.code.inside.values import NotPlainError, decode, encode

TYPE_CHECKING = False  # as in values
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn, TextIO

_PROGRAM_MODULES = ("program", "solution")


class FailedError(Exception):
    """The program's fault."""


class Line:
    """To the program, through the verifier. used: a test asked for something. failed: the program's fault, though a
    test caught its exception. broken: the test's own fault."""

    def __init__(self, questions: TextIO, replies: TextIO) -> None:
        self.questions, self.replies = questions, replies
        self.used, self.failed, self.broken = False, "", ""
        self.exceptions: dict[str, type[BaseException]] = {}

    def ask(self, request: dict[str, Any], places: tuple[Any, ...] = ()) -> Any:
        """A plain value, or a stand-in for an object. Raises what the program raised, as a built-in exception or as
        one that the tests name. places: the arguments themselves, for what the call changed in them."""
        self.questions.write(json.dumps({"ask": request}) + "\n")
        self.questions.flush()
        reply = json.loads(self.replies.readline())
        if "raised" in reply:
            raise self.exception(reply["raised"])
        try:
            value = decode(reply["value"], lambda number: Object(self, {"object": number}))
        except (KeyError, NotPlainError, RecursionError):
            self.fail("not_plain")
        self.take_over(places, reply)
        return value

    def take_over(self, places: tuple[Any, ...], reply: dict[str, Any]) -> None:
        for at, told in reply.get("changed", ()):
            place, value = places[at], decode(told, lambda number: Object(self, {"object": number}))
            if type(value) is not type(place):
                self.fail("not_plain")
            if isinstance(place, list):
                place[:] = value
            elif isinstance(place, (dict, set)):
                place.clear()
                place.update(value)

    def exception(self, names: list[str]) -> BaseException:
        for name in names:
            known = self.exceptions.get(name) or getattr(builtins, name, None)
            if isinstance(known, type) and issubclass(known, Exception) and known is not AssertionError:
                try:
                    return known("raised by the program")
                except TypeError:  # UnicodeDecodeError and its like take more
                    continue
        return RuntimeError("raised by the program")

    def fail(self, reason: str) -> NoReturn:
        self.failed = self.failed or reason
        raise FailedError(reason)

    def call(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.used = True
        told = [self.told(one) for one in args]
        named = {name: self.told(one) for name, one in kwargs.items()}
        return self.ask({"do": "call", "target": target, "args": told, "kwargs": named}, args)

    def apply(self, operation: str, target: Any, *args: Any) -> Any:
        self.used = True
        told = [self.told(one) for one in args]
        return self.ask({"do": "apply", "operation": operation, "target": target, "args": told})

    def told(self, value: Any) -> Any:
        try:
            return encode(value, _number)
        except NotPlainError:
            self.broken = "test_passes_an_object"
            raise


def _number(value: Any) -> Any:
    if type(value) is Object and isinstance(value._target, dict):
        return value._target
    raise NotPlainError(type(value).__name__)


class Object:
    """A function, class or object of the program's own, or a name that it does not have."""

    __slots__ = ("_line", "_target")

    def __init__(self, line: Line, target: Any) -> None:
        self._line, self._target = line, target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._line.call(self._target, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in ("__name__", "__doc__"):
            raise AttributeError(name)
        return self._line.ask({"do": "get", "target": self._target, "attribute": name})

    def _compared(self, *_: Any) -> NoReturn:
        # An object may claim to be equal to anything.
        self._line.fail("not_plain")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _compared
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self._plain("bool", bool))

    def __len__(self) -> int:
        return int(self._plain("len", int))

    def __str__(self) -> str:
        return str(self._plain("str", str))

    def __repr__(self) -> str:
        return str(self._plain("repr", str))

    def __int__(self) -> int:
        return int(self._plain("int", int))

    def __float__(self) -> float:
        return float(self._plain("float", float))

    def __next__(self) -> Any:
        return self._line.apply("next", self._target)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._plain("list", list))

    def __getitem__(self, key: Any) -> Any:
        return self._line.apply("getitem", self._target, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._line.apply("setitem", self._target, key, value)

    def __delitem__(self, key: Any) -> None:
        self._line.apply("delitem", self._target, key)

    def _plain(self, operation: str, kind: type) -> Any:
        value = self._line.apply(operation, self._target)
        return value if isinstance(value, kind) else self._line.fail("not_plain")


class _ProgramModule(types.ModuleType):
    """What `from solution import f` finds."""

    def __init__(self, name: str, line: Line) -> None:
        super().__init__(name)
        self._line = line

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(self._line, name)


def stand_in(line: Line, name: str) -> Any:
    """For a name of the program's: its value where it is plain."""
    try:
        found = line.ask({"do": "get", "target": name})
    except Exception:  # the program does not have it; to use it is the failure
        return Object(line, name)
    line.used = line.used or type(found) is not Object
    return found


def names_of(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names that a test reads and that are none of Python's own, and those of exceptions that it expects. A module of
    the standard library is the real one: a program that defines a `math` of its own must not judge with it."""
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    expected: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type:
            expected.append(node.type)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _RAISES:
            expected += node.args[:1]
    parts = [one for part in expected for one in (part.elts if isinstance(part, ast.Tuple) else [part])]
    exceptions = {one.id for one in parts if isinstance(one, ast.Name)}
    own = {*dir(builtins), *used_modules(tree), *_LIBRARIES}
    return read - own, exceptions - own


_RAISES = ("raises", "assertRaises")
_LIBRARIES = ("np", "numpy", "pd", "pandas", "pytest", "scipy", "sympy", "torch")
"""Libraries that tests compare with, by the names they go under."""


def used_modules(tree: ast.Module) -> set[str]:
    """Modules of the standard library by whose name a test reads something, imported or not."""
    read = {
        node.value.id for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return read & sys.stdlib_module_names


def run_test(line: Line, told: dict[str, Any]) -> str:
    """Nothing where it passed, else "failed" or "broken" with the rule behind it."""
    line.used, line.failed, line.broken, line.exceptions = False, "", "", {}
    try:
        trees = [ast.parse(told["setup"]), ast.parse(told["code"])]
        names: dict[str, Any] = {"__name__": "tests"}
        for name in _PROGRAM_MODULES:
            sys.modules[name] = _ProgramModule(name, line)
        for tree in trees:
            read, exceptions = names_of(tree)
            line.exceptions.update({name: type(name, (Exception,), {}) for name in exceptions})
            allowed = {told["entry_point"].partition(".")[0], *told["names"]} - {""}
            read = (read & allowed if allowed else read) - exceptions
            names.update({name: stand_in(line, name) for name in read}, **line.exceptions)
            names.update({name: importlib.import_module(name) for name in used_modules(tree)})
        for tree in trees:
            exec(compile(tree, "tests.py", "exec"), names)
        defined = [node.name for node in trees[1].body if isinstance(node, ast.FunctionDef)]
        for name in defined:
            if name == "check" and told["entry_point"]:
                names["check"](stand_in(line, told["entry_point"]))
            elif name.startswith("test_"):
                names[name]()
    except BaseException as error:
        return outcome(line, error)
    return outcome(line, None)


def outcome(line: Line, error: BaseException | None) -> str:
    """A test that fails before it has asked the program for anything is itself at fault, as is one that never asks."""
    if line.broken:
        return f"broken {line.broken}"
    if line.failed:
        return f"failed {line.failed}"
    if not line.used or (isinstance(error, NameError) and error.name):
        return "broken test_calls_nothing" if error is None else "broken test_does_not_run"
    if error is None:
        return ""
    return "failed failed_assertion" if isinstance(error, AssertionError) else "failed raised"


def main() -> None:
    """stdin and stdout are for the verifier; what tests print goes nowhere."""
    told, said = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    said.write('"ready"\n')
    said.flush()
    line = Line(said, told)
    for text in told:
        test = json.loads(text)
        said.write(json.dumps({"number": test["number"], "outcome": run_test(line, test)}) + "\n")
        said.flush()
