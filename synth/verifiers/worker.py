"""The program of one worker process: checks in, verdicts out, over a socket; started by Workers and by nothing else."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
from typing import Any, Final

from synth.errors import SynthError
from synth.verifiers.front_door import load

_SET_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


def _die_with(parent: int) -> None:
    """Be killed by the kernel when the parent is, however it ends and whatever this process is at."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before it could be told
        os._exit(0)


def _limit_memory(size: int) -> None:
    """The soft limit alone, so that a sandbox may give its own children another."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size if hard < 0 else min(size, hard), hard))


def answer(line: bytes) -> dict[str, Any]:
    """What is sent back for one check: its verdict's fields, or `refused` with a recipe's mistake."""
    kind, gold, text, options = json.loads(line)
    try:
        verdict = load(kind).verify(gold, text, options)
    except SynthError as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"outcome": "error", "reason": "memory", "leave": True}
    except Exception as error:
        return {"outcome": "error", "reason": f"raised {type(error).__name__}"}
    return {"outcome": verdict.outcome, "reason": verdict.reason, "score": verdict.score}


def serve(connection: socket.socket, kinds: list[str]) -> None:
    """Load the kinds, say so, and answer checks until the other end is closed."""
    for kind in kinds:
        prepare = getattr(load(kind), "prepare", None)
        if prepare is not None:
            prepare()
    with connection, connection.makefile("rb") as lines:
        connection.sendall(b"{}\n")
        for line in lines:
            reply = answer(line)
            connection.sendall(json.dumps(reply).encode() + b"\n")
            if reply.get("leave"):
                return


def main(arguments: list[str]) -> None:
    descriptor, parent, memory, *kinds = arguments
    _die_with(int(parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when its workers end
    _limit_memory(int(memory))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(socket.socket(fileno=int(descriptor)), kinds)


if __name__ == "__main__":
    main(sys.argv[1:])
