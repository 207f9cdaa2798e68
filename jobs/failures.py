"""What a command says when it fails: one line on stderr and an exit code, a traceback only with --debug.

The message of an unexpected exception may hold a document's text, so only its class and place are told.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import UserError
from train.program import DEBUG

ROOMS = frozenset({"shards", "text", "ingest", "filters", "dedup", "train", "mixing", "synth", "jobs"})
ROOT = Path(__file__).resolve().parent.parent

DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


@dataclass
class Outcome:
    """The exit code of a command."""

    code: int = DONE


def debug_flag(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    """Whether --debug stands among the arguments (before a `--`), and the arguments without it."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    words = [word for index, word in enumerate(arguments) if word != "--debug" or index > end]
    return len(words) < len(arguments), words


class ReaderGoneError(Exception):
    """Whoever read our output has seen enough. typer would make an exit 1 of a BrokenPipeError."""


@contextmanager
def reader_watched() -> Iterator[None]:
    """Let a BrokenPipeError pass through typer under another name."""
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGoneError from error


@contextmanager
def _programs_tell_all() -> Iterator[None]:
    """Programs that this one starts tell the whole story, too."""
    before = os.environ.get(DEBUG)
    os.environ[DEBUG] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[DEBUG]
        else:
            os.environ[DEBUG] = before


@contextmanager
def told(debug: bool) -> Iterator[Outcome]:
    """Turn whatever is raised inside into a line on stderr and the outcome's code."""
    outcome = Outcome()
    try:
        with _programs_tell_all() if debug else nullcontext():
            yield outcome
    except (BrokenPipeError, ReaderGoneError):
        # The reader has seen enough (`| head`); without this, Python complains once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        outcome.code = INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        outcome.code, message = describe(error)
        print(message, file=sys.stderr)
    if outcome.code == INTERRUPTED:
        print("interrupted; the same command goes on from here", file=sys.stderr)


def describe(error: Exception) -> tuple[int, str]:
    """The exit code and the line for an exception that reached the command line."""
    if isinstance(error, UserError):
        return error.exit_code, str(error)
    if _is_usage(error):
        command = getattr(getattr(error, "ctx", None), "command_path", None) or "gristmill"
        return WRONG_USE, f"{command}: {_usage(error)} See: {command} --help"
    if isinstance(error, ValueError) and type(error).__module__.partition(".")[0] in ROOMS:
        return WRONG_USE, str(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return FAILED, f"{where}{error.strerror[0].lower()}{error.strerror[1:]}{_mend(error)}"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] not in ROOMS:
        return FAILED, f"the package {error.name} is not installed; see: gristmill doctor"
    return FAILED, f"bug: {type(error).__name__} at {place(error)}; the whole story: the same command with --debug"


def place(error: BaseException) -> str:
    """Where in our own code an exception passed last, as file:line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(ROOT)]
    ours = [frame for frame in frames if "site-packages" not in frame.filename]
    if not ours:
        return "an unknown place"
    return f"{Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno}"


def _is_usage(error: Exception) -> bool:
    # typer vendors click under a private name; its exceptions are known by what they can do.
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def _usage(error: Exception) -> str:
    said = str(error.format_message()) if hasattr(error, "format_message") else str(error)
    said = " ".join(said.split()).replace(": Value error, ", ": ").replace(": Input should", ": should")
    return said if said.endswith((".", "?")) else f"{said}."


def _mend(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "; give yourself the right to it, or choose another place"
    if isinstance(error, FileNotFoundError):
        return "; check the path"
    if error.errno in (28, 122):  # ENOSPC, EDQUOT
        return "; free some space or set another output:, then repeat the command: it goes on from here"
    return ""
