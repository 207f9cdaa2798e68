"""Tokens a second of our teachers on vLLM against vLLM's own offline batch: `python -m bench.synth_vllm [prompts]`.

SmolLM2-135M on this machine's CPU, short arithmetic questions, the same prompts, sampling and seeds for all, each in a
process of its own that vLLM's environment runs. They take turns, a round each and each first in its turn; the ratio is
the median of those of the rounds, so that what else the machine does meanwhile counts for both.

offline: `LLM.generate` with token ids, all handed over at once. engine: EngineTeacher, requests one by one in asyncio,
rendering and detokenising theirs. http: ServedTeacher, server and client on the same cores.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from synth.requests import Request, Sampling, seed_of
from synth.teachers.settings import Argument, InProcess, TeacherSettings, Vllm
from synth.teachers.small import MODEL, small_model
from synth.teachers.teacher import Teacher
from synth.teachers.vllm_environment import engine_arguments, python_of

ROOT = Path(__file__).resolve().parent.parent
ROUNDS, PROMPTS, AT_ONCE, MAX_TOKENS = 5, 128, 64, 64
TARGETS = {"engine": 0.95, "http": 0.85}
ARGUMENTS: dict[str, Argument] = {
    "dtype": "bfloat16",
    "max_model_len": 1024,
    "max_num_seqs": AT_ONCE,
    "kv_cache_memory_bytes": 1 << 30,
}


def requests(count: int, number: int) -> list[Request]:
    asked = Sampling(temperature=0.7, max_tokens=MAX_TOKENS)
    return [
        Request(
            messages=({"role": "user", "content": f"Ann has {at} apples and buys {at * 7 % 23}. How many has she?"},),
            sampling=asked,
            rollout=number,
        )
        for at in range(count)
    ]


def settings(kind: str, model: str) -> TeacherSettings:
    if kind == "http":
        served = Vllm(path=model, python=sys.executable, device="cpu", arguments=ARGUMENTS)
        return TeacherSettings(model=MODEL, vllm=served, max_in_flight=2 * AT_ONCE)
    inside = InProcess(path=model, device="cpu", arguments=ARGUMENTS)
    return TeacherSettings(model=MODEL, in_process=inside, max_in_flight=2 * AT_ONCE)


def offline(model: str, count: int) -> None:
    """vLLM's own: the same engine arguments; prompts are rendered before the clock starts."""
    from vllm import LLM, SamplingParams

    llm = LLM(model=model, seed=0, use_tqdm_on_load=False, **(engine_arguments("cpu") | ARGUMENTS))
    tokenizer, identity = llm.get_tokenizer(), settings("engine", model).identity()

    def work(number: int) -> int:
        wanted = requests(count, number)
        params = [
            SamplingParams(temperature=0.7, max_tokens=MAX_TOKENS, seed=seed_of(one.key(identity))) for one in wanted
        ]
        start = time.perf_counter()
        made = llm.generate(prompts[number], params, use_tqdm=False)
        return tell(sum(len(one.outputs[0].token_ids) for one in made), time.perf_counter() - start)

    prompts = [
        [
            {
                "prompt_token_ids": tokenizer.apply_chat_template(
                    list(one.messages), add_generation_prompt=True, return_dict=True
                )["input_ids"]
            }
            for one in requests(count, number)
        ]
        for number in range(ROUNDS + 1)
    ]
    tell(0, 0.0)
    for line in sys.stdin:
        work(int(line))


async def ours(kind: str, model: str, count: int) -> None:
    if kind == "http":
        from synth.teachers.vllm_server import ServedTeacher

        teacher: Teacher = ServedTeacher(settings(kind, model), progress=None)
    else:
        from synth.teachers.vllm_engine import EngineTeacher

        teacher = EngineTeacher(settings(kind, model))
    await teacher.open()
    tell(0, 0.0)
    loop = asyncio.get_running_loop()
    try:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            wanted = requests(count, int(line))
            start = time.perf_counter()
            made = await asyncio.gather(*(teacher.generate(one) for one in wanted))
            tell(sum(one.completion_tokens for one in made), time.perf_counter() - start)
    finally:
        await teacher.close()


def tell(tokens: int, seconds: float) -> int:
    os.write(RESULTS, (json.dumps([tokens, seconds]) + "\n").encode())
    return tokens


RESULTS = int(os.environ.get("GRISTMILL_BENCH_RESULTS", "1"))
"""Where a contestant tells its figures: vLLM's own lines go elsewhere."""


class Contestant:
    def __init__(self, kind: str, python: str, model: str, count: int) -> None:
        self._kind = kind
        reading, writing = os.pipe()
        self._told = os.fdopen(reading)
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "GRISTMILL_BENCH_RESULTS": str(writing), "VLLM_LOGGING_LEVEL": "ERROR",
        }  # fmt: skip
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment.pop(name, None)
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [python, "-m", "bench.synth_vllm", "--as", kind, model, str(count)], env=environment, cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors, pass_fds=(writing,), text=True,
        )  # fmt: skip
        os.close(writing)
        self._read()

    def _read(self) -> Any:
        line = self._told.readline()
        if not line:
            self._errors.seek(0)
            raise SystemExit(f"bench.synth_vllm: {self._kind} ended: {self._errors.read()[-2000:]}")
        return json.loads(line)

    def round(self, number: int) -> float:
        """Tokens a second."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()
        tokens, seconds = self._read()
        return float(tokens / seconds)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else PROMPTS
    python, model = python_of(Vllm(device="cpu")), small_model()
    names = ("offline", "engine", "http")
    contestants = {name: Contestant(name, python, model, count) for name in names}
    try:
        speeds: dict[str, list[float]] = {name: [] for name in names}
        for number in range(ROUNDS + 1):
            for name in names[number % 3 :] + names[: number % 3]:
                speed = contestants[name].round(number)
                if number:  # the first warms up
                    speeds[name].append(speed)
    finally:
        for one in contestants.values():
            one.close()
    theirs = statistics.median(speeds["offline"])
    for name, target in TARGETS.items():
        mine = statistics.median(speeds[name])
        ratio = statistics.median(one / other for one, other in zip(speeds[name], speeds["offline"], strict=True))
        told = f"ours {mine:.0f} tokens/s, LLM.generate {theirs:.0f}, ratio {ratio:.3f} (target {target})"
        print(f"bench synth_vllm {name}: {told}", flush=True)
    print(
        f"bench synth_vllm rounds: {json.dumps({name: [round(one) for one in told] for name, told in speeds.items()})}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as"]:
        kind, model, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
        if kind == "offline":
            offline(model, count)
        else:
            asyncio.run(ours(kind, model, count))
    else:
        main()
