"""Calls into a program under test, from within its own process: reads what to call, writes what came of it.

The program can do with this process what it likes, so nothing here is a verdict: a line says what the program claims
to have returned, and who knows what it should be sits outside. Each request has a number that nobody can guess and the
reply repeats, so that no reply can be written before its question was asked.
"""

from __future__ import annotations

import itertools
import json
import operator
import os
import sys
import types

from synth.verifiers.code.inside.values import NotPlainError, decode, encode

TYPE_CHECKING = False  # as in values
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

_MAX_ITEMS = 1_000_000


class Program:
    """The program's names, and the objects of its own that a test holds by number."""

    def __init__(self) -> None:
        self.module = types.ModuleType("program")
        self.objects: list[Any] = []
        self.keeps = False

    def load(self, source: str) -> None:
        sys.modules["program"] = self.module
        exec(compile(source, "program.py", "exec"), self.module.__dict__)

    def find(self, told: Any) -> Any:
        """An object by {"object": n}, or one by a dotted name, whose classes are made without arguments."""
        if isinstance(told, dict):
            return self.objects[told["object"]]
        first, *rest = told.split(".")
        found = getattr(self.module, first)
        for name in rest:
            found = getattr(found() if isinstance(found, type) else found, name)
        return found

    def keep(self, value: Any) -> Any:
        if not self.keeps:
            raise NotPlainError(type(value).__name__)
        self.objects.append(value)
        return {"object": len(self.objects) - 1}

    def kept(self, number: Any) -> Any:
        return self.objects[number]

    def call(self, told: dict[str, Any]) -> dict[str, Any]:
        """What the call returned, and the arguments that it changed, by their place."""
        args = [decode(one, self.kept) for one in told["args"]]
        kwargs = {name: decode(one, self.kept) for name, one in told["kwargs"].items()}
        returned = self.find(told["target"])(*args, **kwargs)
        reply = {"value": encode(returned, self.keep)}
        if self.keeps:
            now = [encode(one, self.keep) if isinstance(one, (list, dict, set)) else None for one in args]
            changed = [(at, one) for at, one in enumerate(now) if one is not None and one != told["args"][at]]
            if changed:
                reply["changed"] = changed
        return reply

    def get(self, told: dict[str, Any]) -> dict[str, Any]:
        """A name of the program's, or an attribute of an object of its own."""
        target = self.find(told["target"])
        return {"value": encode(getattr(target, told["attribute"]) if "attribute" in told else target, self.keep)}

    def apply(self, told: dict[str, Any]) -> dict[str, Any]:
        """One of a few operations on an object of its own."""
        args = [decode(one, self.kept) for one in told["args"]]
        return {"value": encode(_OPERATIONS[told["operation"]](self.find(told["target"]), *args), self.keep)}


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "bool": bool,
    "len": len,
    "str": str,
    "repr": repr,
    "int": int,
    "float": float,
    "next": next,
    "getitem": operator.getitem,
    "setitem": operator.setitem,
    "delitem": operator.delitem,
    "list": lambda value: list(itertools.islice(value, _MAX_ITEMS)),
}


def answer(program: Program, told: dict[str, Any]) -> dict[str, Any]:
    """The reply to one request: a value, the names of what was raised, or that the value is not plain."""
    try:
        if "load" in told:
            program.keeps = told["keeps"]
            program.load(told["load"])
            return {"value": None}
        wanted = {"call": program.call, "get": program.get, "apply": program.apply}[told["do"]]
        return wanted(told)
    except NotPlainError as error:
        return {"not_plain": str(error)}
    except SystemExit:
        raise
    except BaseException as error:
        return {"raised": [kind.__name__ for kind in type(error).__mro__]}


def serve(requests: TextIO, replies: TextIO) -> None:
    write, flush, dumps = replies.write, replies.flush, json.dumps
    write('"ready"\n')
    flush()
    program = Program()
    for line in requests:
        told = json.loads(line)
        reply = answer(program, told)
        reply["number"] = told["number"]
        write(dumps(reply) + "\n")
        flush()


def main() -> None:
    """stdin and stdout are for the requests and replies; what the program prints goes nowhere."""
    # Room for a program that recurses as deep as Python's own limit, on top of the frames here.
    sys.setrecursionlimit(sys.getrecursionlimit() + 50)
    requests, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    serve(requests, replies)
