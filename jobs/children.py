"""Programs of the training room in processes of their own: torch stays out of this one, torchrun may start many."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from jobs.errors import UserError
from shards.store import read_json
from train.program import DEBUG, INTERRUPTED, LAST_WORDS
from train.starter import HOLDS_STDIN

PROGRESS = ("train: ", "sft: ", "proxies: ", "mix: ")  # how the programs begin what they say of their progress


class ChildFailedError(Exception):
    """A program ended with another exit code than 0; the message is its own last words, in a line."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


def run(
    module: str, settings: Mapping[str, Any], *, processes: int = 1, say: Callable[[str], None] | None = None
) -> None:
    """Run `python -m module SETTINGS.json`, under torchrun for several processes; its stderr goes line by line to
    `say` (default: our own stderr). torchrun's own lines are left out: they tell what our programs have told.

    Raises ChildFailedError. An interrupt ends the program, too, and one of the program alone is one of this process:
    KeyboardInterrupt. Where this process is killed, the program ends itself (train.starter).
    """
    say = say or (lambda line: print(line, file=sys.stderr, flush=True))
    with tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
        path, words = os.path.join(folder, "settings.json"), os.path.join(folder, "last-words.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "--module"]
        command = [sys.executable, *(launcher if processes > 1 else ["-m"]), module, path]
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ, LAST_WORDS: words, HOLDS_STDIN: "1"},
        ) as child:
            code = _followed(child, say, only=PROGRESS if processes > 1 and DEBUG not in os.environ else ("",))
        if code in {INTERRUPTED, -signal.SIGINT}:
            raise KeyboardInterrupt
        if code != 0:
            raise _failure(module, code, read_json(words))


def _followed(child: subprocess.Popen[str], say: Callable[[str], None], *, only: tuple[str, ...]) -> int:
    assert child.stderr is not None
    try:
        for line in child.stderr:
            if line.startswith(only):
                say(line.rstrip("\n"))
        return child.wait()
    except BaseException:
        child.terminate()
        child.communicate()  # reads what it still says: nobody waits for a pipe that is full
        raise


def _failure(module: str, code: int, words: dict[str, Any] | None) -> ChildFailedError:
    if words is not None:  # torchrun ends with 1, whatever its processes end with
        return ChildFailedError(int(words["code"]), str(words["line"]))
    how = f"was ended by signal {-code}, perhaps for want of memory" if code < 0 else f"ended with exit code {code}"
    return ChildFailedError(code, f"python -m {module}: {how}")


def failed(error: ChildFailedError, mend: str) -> UserError:
    """The error for people: the cause, and where to go on, which a wrong use does not ask."""
    return UserError(str(error)) if error.code == 2 else UserError(f"{error}; {mend}", exit_code=1)
