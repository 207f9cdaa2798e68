"""The driver with its store against a simulated teacher: `python -m bench.synth_run [cpu|memory|kills]`.

cpu: CPU time of the client's process for a request, 512 in flight: driver, store and HTTP client together, no verifier.
The simulator is a process of its own. Target: 2 ms.
memory: peak of the client's resident memory at 1,000 and 100,000 rows, a request each. Target: within 20 %.
kills: 5,000 requests with the program killed twenty times; requests that the simulator answered more than once, over
what was in flight at the kills. Target: 1.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.flows import Desk, Flow
from synth.items import Item, Outcome, Sample, SampleKind
from synth.replies import Failure
from synth.requests import Request, Sampling
from synth.simulator import Faults, Known, Latency, SimulatorProcess, SimulatorSettings, Speech
from synth.verdicts import Check
from synth.verdicts import Outcome as Says

ROOT = Path(__file__).resolve().parent.parent
TARGET_MILLISECONDS, TARGET_MEMORY, TARGET_AGAIN = 2.0, 1.2, 1.0


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Answering:
    """A task for benchmarks and tests: each item's prompt is answered some times, and each answer verified.

    rollouts: where no allocation says how many. verifier: kind of the check; "" accepts what was replied.
    pilot_rollouts: of a pilot, behind which the hard items get twice as many rollouts and the others one more.
    """

    name: ClassVar[str] = "answering"
    version: ClassVar[int] = 1

    teacher: str = "teacher"
    rollouts: int = Field(default=4, ge=1)
    max_tokens: int = Field(default=256, ge=1)
    verifier: str = ""
    pilot_rollouts: int | None = None

    def items(self, rows: Iterable[Item]) -> Iterable[Item]:
        return rows

    def allocate(self, pilots: Any, seed: int) -> list[int]:
        return [2 * trials if right * 2 < trials else trials + 1 for trials, right in pilots]

    def flow(self, item: Item, desk: Desk) -> Flow:
        messages = ({"role": "user", "content": item.prompt},)
        sampling = Sampling(max_tokens=self.max_tokens)
        requests = [
            Request(messages=messages, sampling=sampling, rollout=at, teacher=self.teacher)
            for at in range(desk.rollouts or self.rollouts)
        ]
        replies = yield requests
        answers = [reply for reply in replies if not isinstance(reply, Failure)]
        verdicts: Any = [None] * len(answers)
        if self.verifier:
            verdicts = yield [Check(kind=self.verifier, gold=item.gold, answer=reply.text) for reply in answers]
        told = iter(zip(answers, verdicts, strict=True))
        samples = []
        for number, reply in enumerate(replies):
            if isinstance(reply, Failure):
                outcome, reason, verdict, turns, tokens = Outcome.FAILED, f"teacher.{reply.stage}", "", messages, 0
            else:
                _, given = next(told)
                right = given is None or given.outcome is Says.RIGHT
                outcome, reason = (Outcome.ACCEPTED, "") if right else (Outcome.REJECTED, "verify.wrong")
                verdict = given.outcome.value if given else ""
                turns, tokens = (*messages, {"role": "assistant", "content": reply.text}), reply.completion_tokens
            samples.append(
                Sample(
                    item=item.id, number=number, kind=SampleKind.CONVERSATION, keys=(reply.key,), outcome=outcome,
                    reason=reason, messages=turns, verdict=verdict, tokens=tokens,
                )
            )  # fmt: skip
        return samples


def write_rows(path: Path, rows: int) -> None:
    """Questions whose answers a simulator with `known()` knows."""
    with path.open("w") as file:
        for at in range(rows):
            row = {"id": f"row-{at:06d}", "prompt": f"[item q{at % 100}] row {at}: what is it?", "gold": str(at % 100)}
            file.write(json.dumps(row) + "\n")


def known() -> dict[str, Known]:
    return {f"q{at}": Known(gold=str(at), skill=0.5) for at in range(100)}


def settings(url: str, rows: Path, *, in_flight: int, **more: Any) -> dict[str, Any]:
    """As a recipe says them; `more` is the task's own."""
    teacher = {
        "model": "simulated", "urls": [url], "max_in_flight": in_flight, "backoff_seconds": 0.02,
        "timeout_seconds": 30.0, "timeout_seconds_per_token": 0.0,
    }  # fmt: skip
    return {
        "teachers": {"teacher": teacher}, "rows": {"files": [str(rows)]},
        "tasks": [{"kind": "bench.synth_run:Answering", **more}],
    }  # fmt: skip


def started(folder: Path, told: dict[str, Any], out: Path) -> subprocess.Popen[bytes]:
    """The program, on its way. It imports this module by its name, so it starts at the project's root."""
    path = folder / "settings.json"
    path.write_text(json.dumps({"settings": told, "out": str(out)}))
    with (folder / "errors.txt").open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "synth.running", str(path)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip


def finished(process: subprocess.Popen[bytes]) -> resource.struct_rusage:
    """Its use of resources. Raises where it failed."""
    _, state, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(state)
    if process.returncode:
        raise SystemExit(f"bench.synth_run: the program ended with {process.returncode}")
    return usage


def cpu(requests: int = 8192, in_flight: int = 512) -> None:
    usages = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        latency = Latency(first_token_seconds=0.2)
        with SimulatorProcess(SimulatorSettings(known=known(), latency=latency)) as simulator:
            # The process's own start is in both, and in neither difference.
            for rows in (in_flight // 4, (requests + in_flight) // 4):
                write_rows(folder / "rows.jsonl", rows)
                told = settings(simulator.url, folder / "rows.jsonl", in_flight=in_flight)
                usages.append(finished(started(folder, told, folder / f"out-{rows}")))
            peak = simulator.stats()["peak_in_flight"]
    seconds = [usage.ru_utime + usage.ru_stime for usage in usages]
    ours = (seconds[1] - seconds[0]) / requests * 1000
    told = f"peak in flight {peak}, {requests} requests"
    print(f"bench synth_run.cpu: ours {ours:.2f} ms a request, theirs none, {told} (target {TARGET_MILLISECONDS})")


def memory(few: int = 1000, many: int = 100_000) -> None:
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SimulatorProcess(SimulatorSettings(known=known())) as simulator:
            for rows in (few, many):
                write_rows(folder / "rows.jsonl", rows)
                told = settings(simulator.url, folder / "rows.jsonl", in_flight=64, rollouts=1)
                peaks.append(finished(started(folder, told, folder / f"out-{rows}")).ru_maxrss / 1024)
    ratio = peaks[1] / peaks[0]
    told = f"{peaks[0]:.0f} MiB at {few}, {peaks[1]:.0f} MiB at {many} rows"
    print(f"bench synth_run.memory: ours {told}, theirs none, ratio {ratio:.2f} (target {TARGET_MEMORY})")


def killed_again_and_again(
    folder: Path, simulator: SimulatorProcess, told: dict[str, Any], out: Path, *, kills: int, requests: int
) -> int:
    """Run into `out`, the program killed (SIGKILL) so many times at drawn moments; returns how often it started."""
    draw = random.Random(7)
    starts = 0
    for at in range(1, kills + 1):
        wanted = round(requests * (at - draw.random()) / (kills + 1))
        process = started(folder, told, out)
        starts += 1
        while process.poll() is None:
            if sum(simulator.stats()["replies"].values()) >= wanted:
                process.send_signal(signal.SIGKILL)
                process.wait()
            time.sleep(0.02)
    finished(started(folder, told, out))
    return starts + 1


def kills(requests: int = 5000, times: int = 20, in_flight: int = 64) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder / "rows.jsonl", requests // 4)
        faults = Faults(too_many=0.034, server_error=0.033, reset=0.033)
        latency = Latency(first_token_seconds=0.02)
        simulated = SimulatorSettings(known=known(), faults=faults, latency=latency, speech=Speech(words=5))
        with SimulatorProcess(simulated) as simulator:
            told = settings(simulator.url, folder / "rows.jsonl", in_flight=in_flight)
            killed_again_and_again(folder, simulator, told, folder / "out", kills=times, requests=requests)
            replies = simulator.stats()["replies"]
    again = sum(replies.values()) - len(replies)
    bound = times * in_flight
    told_again = f"{again} of {len(replies)} requests answered again, {bound} in flight at {times} kills"
    print(f"bench synth_run.kills: ours {told_again}, theirs none, ratio {again / bound:.2f} (target {TARGET_AGAIN})")


def main(arguments: list[str]) -> None:
    benches = {"cpu": cpu, "memory": memory, "kills": kills}
    for name in arguments or ["cpu", "memory", "kills"]:
        benches[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
