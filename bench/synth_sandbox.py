"""Programs verified in the sandbox: `python -m bench.synth_sandbox`.

Each figure is programs a second on one worker process, wall time, warm; a program's sandbox, interpreter and tests
included. theirs: the same interpreter started for each program without any sandbox, the usual fork-and-exec grader,
which an answer can make say what it likes.

calls: a function, ten calls. runs: three runs of a whole program. assertions: ten assert statements, two sandboxes.
processes: calls with more worker processes. A sandbox waits for the kernel more than it computes, so more of them than
there are cores do more.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

from synth.verdicts import Check, Outcome
from synth.verifiers import Workers
from synth.verifiers.code.bubblewrap import interpreter

ROUNDS = 5
PROGRAMS = 20
FUNCTION = "def f(x):\n    return x * x\n"
WHOLE = "print(int(input()) ** 2)\n"
GOLDS: dict[str, tuple[str, Any]] = {
    "calls": (FUNCTION, {"entry_point": "f", "hidden": [{"args": [at], "expected": at * at} for at in range(10)]}),
    "runs": (WHOLE, {"hidden": [{"stdin": f"{at}\n", "stdout": f"{at * at}\n"} for at in range(3)]}),
    "assertions": (FUNCTION, {"hidden": [{"code": "\n".join(f"assert f({at}) == {at * at}" for at in range(10))}]}),
}


def ours(workers: Workers, name: str) -> Callable[[], None]:
    answer, gold = GOLDS[name]
    checks = [Check(kind="code", gold=gold, answer=answer) for _ in range(PROGRAMS)]

    def run() -> None:
        for verdict in workers.check_all(checks):
            if verdict.outcome != Outcome.RIGHT:
                raise SystemExit(f"bench.synth_sandbox: {name}: {verdict.outcome} {verdict.reason}")

    return run


def theirs(name: str) -> Callable[[], None]:
    """One process a program, three for the runs, with the tests in the same process."""
    path = interpreter("").path
    answer, gold = GOLDS[name]
    tests = "".join(f"assert f({at}) == {at * at}\n" for at in range(10))
    commands = [(answer, case["stdin"]) for case in gold["hidden"]] if name == "runs" else [(answer + tests, "")]

    def run() -> None:
        for _ in range(PROGRAMS):
            for text, stdin in commands:
                subprocess.run([path, "-s", "-S", "-c", text], input=stdin, text=True, check=True, capture_output=True)

    return run


def a_second(sides: list[Callable[[], None]]) -> list[float]:
    """The median rate of each side, in turns."""
    rates: list[list[float]] = [[] for _ in sides]
    for run in sides:
        run()
    for _ in range(ROUNDS):
        for side, run in zip(rates, sides, strict=True):
            began = time.perf_counter()
            run()
            side.append(PROGRAMS / (time.perf_counter() - began))
    return [statistics.median(side) for side in rates]


def main() -> None:
    with Workers(processes=1, kinds=("code",)) as one:
        for name in GOLDS:
            mine, other = a_second([ours(one, name), theirs(name)])
            print(f"bench synth_sandbox.{name}: ours {mine:.1f}/s, unsafe {other:.1f}/s, ratio {mine / other:.2f}")
    cores = os.cpu_count() or 1
    for processes in (1, cores, 2 * cores):
        with Workers(processes=processes, kinds=("code",)) as workers:
            (rate,) = a_second([ours(workers, "calls")])
        print(f"bench synth_sandbox.processes_{processes}: ours {rate:.1f}/s, {rate / cores:.1f}/s a core of {cores}")


if __name__ == "__main__":
    main()
