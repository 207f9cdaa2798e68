"""How a whole program of each language is compiled and run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from synth.verifiers.code.bubblewrap import Place, SandboxError, interpreter
from synth.verifiers.code.processes import Sandbox
from synth.verifiers.code.sessions import FailedError, python_command
from synth.verifiers.code.settings import Settings

_SOURCE: Final = "/program"
_MADE: Final = "program"  # in the folder that the sandbox starts in
_COMPILER_MEMORY: Final = 2048
"""MiB. g++ takes some 300 for a program that includes all of its library; templates may ask for any amount."""
_LARGEST_PROGRAM: Final = 1 << 16
"""KiB, of what a compiler makes."""


@dataclass(frozen=True, kw_only=True)
class Compiler:
    """command: of which the first is looked for on this machine. suffix: that it knows the language by."""

    command: tuple[str, ...]
    suffix: str
    after: tuple[str, ...] = ()


_COMPILERS: Final = {
    "c": Compiler(command=("gcc", "-O2", "-w", "-std=gnu17"), suffix=".c", after=("-lm",)),
    "cpp": Compiler(command=("g++", "-O2", "-w", "-std=gnu++17"), suffix=".cpp"),
}


@dataclass(frozen=True, kw_only=True)
class Executable:
    """A program that is ready to run: its command inside, the files that it needs, and what it sees."""

    command: Sequence[str]
    files: dict[str, bytes]
    place: Place


@cache
def _found(name: str) -> str:
    """A program under /usr, which is what a sandbox shows."""
    path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
    if path is None or not os.path.realpath(path).startswith("/usr/"):
        raise SandboxError("no_interpreter", f"{name} is not installed under /usr")
    return path


def executable(program: str, settings: Settings) -> Executable:
    """Compiled where its language is. Raises FailedError where it does not compile, SandboxError where the language is
    not installed."""
    text = program.encode("utf-8", "surrogatepass")
    if settings.language in _COMPILERS:
        return Executable(command=[_SOURCE], files={_SOURCE: _compiled(text, settings)}, place=Place())
    if settings.language == "javascript":
        command, place = [_found("node"), f"{_SOURCE}.js"], Place(address_space=False)
        return Executable(command=command, files={f"{_SOURCE}.js": text}, place=place)
    path = f"{_SOURCE}.py"
    place = interpreter(settings.interpreter).place
    return Executable(command=python_command(settings, path), files={path: text}, place=place)


def _compiled(text: bytes, settings: Settings) -> bytes:
    """The program that a compiler made, as bytes that nothing but a sandbox executes."""
    compiler = _COMPILERS[settings.language]
    source = f"{_SOURCE}{compiler.suffix}"
    name, *flags = compiler.command
    made = [_found(name), *flags, "-o", _MADE, source, *compiler.after]
    limits = replace(
        settings.limits, memory_mebibytes=_COMPILER_MEMORY, files_kibibytes=_LARGEST_PROGRAM, processes=16,
        output_kibibytes=_LARGEST_PROGRAM, cpu_seconds=max(1, round(settings.limits.compile_seconds)),
    )  # fmt: skip
    script = '"$@" >&2 && exec cat ' + _MADE
    with Sandbox(["/bin/sh", "-c", script, "sh", *made], limits=limits, place=Place(), files={source: text}) as sandbox:
        sandbox.send(b"", last=True)
        found, code = sandbox.finish(time.monotonic() + settings.limits.compile_seconds)
    if code != 0 or not found:
        raise FailedError("does_not_compile")
    return found
