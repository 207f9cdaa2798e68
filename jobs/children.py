"""Programs of the training room in processes of their own: torch stays out of this one, torchrun may start many."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from jobs.errors import UserError

LAST_LINES = 30


class ChildFailedError(Exception):
    """A program ended with another exit code than 0; the message is its last line, `lines` what it said before."""

    def __init__(self, module: str, code: int, lines: list[str]) -> None:
        said = next((line for line in reversed(lines) if line.strip()), f"{module} ended with exit code {code}")
        super().__init__(said)
        self.code, self.lines = code, lines


def run(
    module: str, settings: Mapping[str, Any], *, processes: int = 1, say: Callable[[str], None] | None = None
) -> None:
    """Run `python -m module SETTINGS.json`, under torchrun for several processes; its stderr goes line by line to
    `say` (default: our own stderr).

    Raises ChildFailedError. An interrupt ends the program, too: it gets the same signal from the terminal, and is
    waited for, so that what it was writing is whole.
    """
    say = say or (lambda line: print(line, file=sys.stderr, flush=True))
    with tempfile.TemporaryDirectory(prefix="gristmill-") as folder:
        path = os.path.join(folder, "settings.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "--module"]
        command = [sys.executable, *(launcher if processes > 1 else ["-m"]), module, path]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace") as child:
            code, lines = _followed(child, say)
    if code != 0:
        raise ChildFailedError(module, code, lines)


def _followed(child: subprocess.Popen[str], say: Callable[[str], None]) -> tuple[int, list[str]]:
    assert child.stderr is not None
    lines: deque[str] = deque(maxlen=LAST_LINES)
    try:
        for line in child.stderr:
            lines.append(line.rstrip("\n"))
            say(lines[-1])
        return child.wait(), list(lines)
    except BaseException:
        child.terminate()
        child.wait()
        raise


def failed(error: ChildFailedError, mend: str) -> UserError:
    """The error for people: the program has told the cause already, so this says where to go on."""
    return UserError(f"{error}; {mend}", exit_code=error.code if error.code in (1, 2) else 1)
