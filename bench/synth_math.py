"""Verdicts on answers of mathematics against math-verify's: `python -m bench.synth_math`.

The shared pairs of gold and answer; each side verifies the same ones, in turns, on one core, CPU time, warm.

plain: numbers, fractions and decimals as data sets of word problems have them. all: math-verify's own tests too.
workers: plain pairs through one worker process, wall time, its socket and JSON included.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from synth.verdicts import Check
from synth.verifiers import Workers, load

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
TARGET_VERDICTS_A_SECOND = 100.0

Pair = tuple[str, str]


def pairs(name: str) -> list[Pair]:
    """(gold, answer) of one of the shared files."""
    path = Path(os.environ.get("GRISTMILL_SHARED", ROOT.parent / "shared")) / "data" / "math_answers" / f"{name}.jsonl"
    if not path.is_file():
        raise SystemExit(f"bench.synth_math: no pairs at {path}; set GRISTMILL_SHARED to the shared folder")
    with path.open(encoding="utf-8") as lines:
        return [(row["gold"], row["answer"]) for row in map(json.loads, lines)]


def ours(some: list[Pair]) -> None:
    verifier = load("math")
    for gold, answer in some:
        verifier.verify(gold, answer, {})


def theirs(some: list[Pair]) -> None:
    """As their README calls it, with the gold delimited as it asks."""
    from math_verify import parse, verify

    for gold, answer in some:
        verify(parse(gold if "$" in gold else f"${gold}$"), parse(answer if "$" in answer else f"${answer}$"))


def a_second(run: Callable[[list[Pair]], None], some: list[Pair], clock: Callable[[], float]) -> float:
    began = clock()
    run(some)
    return len(some) / (clock() - began)


def compare(name: str, some: list[Pair], fewer: list[Pair]) -> None:
    """Medians of several rounds; theirs on fewer pairs, as it takes long."""
    ours(some)
    theirs(fewer)
    rates: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        rates[0].append(a_second(ours, some, time.process_time))
        rates[1].append(a_second(theirs, fewer, time.process_time))
    mine, other = (statistics.median(side) for side in rates)
    print(f"bench synth_math.{name}: ours {mine:.0f}/s, theirs {other:.0f}/s, ratio {mine / other:.1f} "
          f"(target {TARGET_VERDICTS_A_SECOND:.0f}/s)")  # fmt: skip


def through_workers(some: list[Pair]) -> None:
    checks = [Check(kind="math", gold=gold, answer=answer) for gold, answer in some]
    with Workers(processes=1, kinds=("math",)) as workers:
        workers.check_all(checks[:10])
        rates = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            workers.check_all(checks)
            rates.append(len(checks) / (time.perf_counter() - began))
    print(f"bench synth_math.workers: ours {statistics.median(rates):.0f}/s (target {TARGET_VERDICTS_A_SECOND:.0f}/s)")


def main() -> None:
    plain = pairs("derived_variants")
    compare("plain", plain, plain[::20])
    tests = pairs("math_verify_tests")
    compare("all", tests, tests)
    through_workers(plain)


if __name__ == "__main__":
    main()
