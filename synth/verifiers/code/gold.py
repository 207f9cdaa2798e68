"""The tests of a program: what the gold of the kind `code` may be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from synth.requests import digest
from synth.verifiers.code.settings import STRICT


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Call:
    """A call of a function (Python only). args, kwargs, expected: JSON values. raises: the exception's name, or that of
    a class above it, where one is expected instead of a value. name: of the function, where it is not the entry point;
    "Class.method" makes the class without arguments."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict)
    expected: Any = None
    raises: str = ""
    name: str = ""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Run:
    """A run of the whole program: what it reads, and what it should write."""

    stdin: str = ""
    stdout: str


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Assertion:
    """A test as Python text (Python only): assert statements, functions test_*, or a function check(candidate) that is
    given the entry point. It runs in a sandbox of its own and calls the program over a pipe, so that what it compares
    are plain values."""

    code: str


Case = Call | Run | Assertion


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Gold:
    """Tests. A list of cases instead of it are hidden ones.

    visible: cases that the prompt shows. hidden: those that it does not show; at least one, as a program that was
        written to pass the cases shown proves nothing. Both must pass.
    entry_point: the function that calls without a name call. names: of the program, which assertions may use besides
        it; with neither, they may use each that they read and that is none of Python's or of its standard library's. A
        program must not be asked for the functions that judge it. setup: Python text before each assertion (imports).
    checker: Python text with a function check(given, expected, found) -> bool, instead of the comparison, for calls
        and runs of which several results are right. given: the arguments as a list (and keyword arguments, where
        there are any, as a mapping behind them), or stdin. It runs in a sandbox of its own.
    """

    hidden: Annotated[tuple[Case, ...], Field(min_length=1)]
    visible: tuple[Case, ...] = ()
    entry_point: str = ""
    names: tuple[str, ...] = ()
    setup: str = ""
    checker: str = ""

    @property
    def cases(self) -> tuple[Case, ...]:
        return (*self.visible, *self.hidden)


class BadGoldError(ValueError):
    """The gold cannot be used; `reason` is the verdict's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_gold(gold: Any, language: str) -> Gold:
    """The tests. Raises BadGoldError for anything that is none, or that cannot be used with the language."""
    told = {"hidden": gold} if isinstance(gold, list | tuple) else gold
    if not isinstance(told, Mapping):
        raise BadGoldError("gold_is_no_tests")
    if not told.get("hidden"):
        raise BadGoldError("no_hidden_test")
    try:
        read = _validated(_Told(told))
    except (ValidationError, TypeError, ValueError, RecursionError):
        raise BadGoldError("gold_is_no_tests") from None
    for case in read.cases:
        if not isinstance(case, Run) and language != "python":
            raise BadGoldError("test_needs_python")
        if isinstance(case, Call) and not (case.name or read.entry_point):
            raise BadGoldError("no_entry_point")
    return read


class _Told:
    """A mapping by its digest: the same tests are read once for all rollouts."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.told = dict(told)
        self.key = digest(self.told)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Told) and other.key == self.key


@lru_cache(maxsize=64)
def _validated(told: _Told) -> Gold:
    return TypeAdapter(Gold).validate_python(told.told)
