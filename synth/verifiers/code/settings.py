"""The options of the kind `code`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid")

Seconds = Annotated[float, Field(gt=0, le=600)]
Language = Literal["python", "javascript", "c", "cpp"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Limits:
    """What one program may use. A program that wants more is wrong, with the limit for its reason.

    wall_seconds: of one case, and of loading the program, once its interpreter has started. total_seconds: of all cases
        together; `checking.limits_seconds` of a run must be above it, with some seconds to start and end sandboxes.
    cpu_seconds: of one process over its life (RLIMIT_CPU): less than wall_seconds, so that a slow program runs into
        this limit, which is the same on a loaded machine.
    memory_mebibytes: of all its processes together, looked at every 20 ms, and of address space each (RLIMIT_AS; not
        for JavaScript, whose engine reserves far more than it uses).
    processes: with threads (RLIMIT_NPROC). open_files: of a process (RLIMIT_NOFILE).
    output_kibibytes: of one case: its stdout and stderr, or the value that a call returned.
    files_kibibytes: of all files that it writes, in a tmpfs that ends with it.
    compile_seconds: for languages that are compiled.
    """

    wall_seconds: Seconds = 6.0
    total_seconds: Seconds = 8.0
    cpu_seconds: int = Field(default=3, ge=1, le=600)
    memory_mebibytes: int = Field(default=512, ge=64, le=1 << 16)
    processes: int = Field(default=16, ge=1, le=1024)
    open_files: int = Field(default=64, ge=16, le=4096)
    output_kibibytes: int = Field(default=1024, ge=1, le=1 << 17)
    files_kibibytes: int = Field(default=16 * 1024, ge=64, le=1 << 22)
    compile_seconds: Seconds = 20.0


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Settings:
    """How a program is found in an answer, run and compared.

    language: what the program is written in. part: fenced, the last ``` block that is marked with the language, else
        the last that is not marked, else the whole answer where it has no block; whole, all of the answer.
    interpreter: of Python, by its path; "" for the system's own, and ours where there is none. It and its libraries
        are what a program can read of this machine, with /usr. packages: a program may import what is installed there.
    tolerance: of numbers whose gold is a float: |value - gold| <= tolerance * max(1, |gold|), as testlib's
        doubleCompare.
    output: how stdout is compared. tokens: split at white space, float tokens within the tolerance; lines: without
        white space at their ends and blank lines at the end; exact.
    strict_types: 1, 1.0 and True are different, as are a list, a tuple and a set. Else Python's equality, where a tuple
        may stand for a list, and a set for a list without order, as JSON can write neither.
    """

    language: Language = "python"
    part: Literal["fenced", "whole"] = "fenced"
    interpreter: str = ""
    packages: bool = False
    limits: Limits = Field(default_factory=Limits)
    tolerance: float = Field(default=1e-6, ge=0, lt=1)
    output: Literal["tokens", "lines", "exact"] = "tokens"
    strict_types: bool = False
