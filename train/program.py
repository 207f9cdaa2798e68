"""What programs (`python -m train.pretrain`, `.sft`, `.proxies`, `mixing.loop`) say when they fail: a line and a code.

Exit code 0 done, 1 failed, 2 wrong use, 130 interrupted. The message of an exception that is not ours may hold a
row's text, so only its class and place are told, and a traceback with GRISTMILL_DEBUG=1. Whoever starts a program
among others (jobs.children) names a file in GRISTMILL_LAST_WORDS: the line goes there, with its code, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from train.starter import end_with_starter

DEBUG, LAST_WORDS = "GRISTMILL_DEBUG", "GRISTMILL_LAST_WORDS"
BUG = "bug: "
FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
ROOMS = frozenset({"shards", "text", "train", "mixing", "synth"})
ROOT = Path(__file__).resolve().parents[1]

# Threads of libgomp (torch on a CPU) wait for each other by turning in circles, by default for milliseconds. Beside
# other busy programs two threads on two cores then trained at a half to a tenth of the speed of one; where the cores
# are free, falling asleep soon costs nothing. It is read when torch is loaded: programs import this module first.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def ended(work: Callable[[], object]) -> int:
    """Do the work, and return the exit code; what was raised is told in a line."""
    end_with_starter()
    try:
        work()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        code, line = described(error)
        say(code, line)
        return code
    return 0


def say(code: int, line: str) -> None:
    """Tell the last words: on stderr, or where whoever started the program wants them."""
    path = os.environ.get(LAST_WORDS)
    if path is None:
        print(line, file=sys.stderr)
        return
    if line.startswith(BUG) and os.path.exists(
        path
    ):  # what another process found is the cause, that its peers are gone is not
        return
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"code": code, "line": line}, file)


def described(error: Exception) -> tuple[int, str]:
    """The exit code and the line of an exception: a ValueError of ours is a wrong use, anything else a failure."""
    ours = type(error).__module__.partition(".")[0] in ROOMS
    if ours and isinstance(error, ValueError | RuntimeError) and str(error):
        return WRONG_USE if isinstance(error, ValueError) else FAILED, " ".join(str(error).splitlines())
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return FAILED, f"{where}{error.strerror[0].lower()}{error.strerror[1:]}; check the path and the room there"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return FAILED, f"{_place(error)}: not enough memory; lower micro_batch_sequences or sequence_tokens"
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] not in ROOMS:
        return FAILED, f"the package {error.name} is not installed; see: gristmill doctor"
    return FAILED, f"{BUG}{type(error).__name__} at {_place(error)}; the whole story: again with {DEBUG}=1"


def _place(error: BaseException) -> str:
    """Where in our own code an exception passed last, as file:line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(ROOT)]
    ours = [frame for frame in frames if "site-packages" not in frame.filename]
    return f"{Path(ours[-1].filename).relative_to(ROOT)}:{ours[-1].lineno}" if ours else "an unknown place"
