"""CPU time of the client a request, at 512 in flight on the simulator: `python -m bench.synth_client [requests]`.

The simulator stands in a process of its own; what is measured is `time.process_time` of this one, from the first
request to the last reply, the event loop and garbage collection included. Replies are of 100 tokens and of
1,000, with the ids of prompt and reply, as vLLM gives them. Target: issue 5's 2 ms. theirs: aiohttp alone, which posts
the same bodies and parses the same JSON, with nothing bounded, retried or recorded.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

import aiohttp

from synth.requests import Request, Sampling
from synth.simulator import Latency, SimulatorProcess, SimulatorSettings, Speech
from synth.teachers import TeacherSettings, opened
from synth.teachers.http_bodies import sending
from synth.teachers.http_teacher import HttpTeacher

ROUNDS, IN_FLIGHT, TARGET_MS = 3, 512, 2.0
QUESTION = "A shop sells pens at 3 for 2 euros and notebooks at 4 euros each. What do 12 pens and 5 notebooks cost? "


def requests(count: int, round_: int) -> list[Request]:
    sampling = Sampling(max_tokens=16_000)
    return [
        Request(messages=({"role": "user", "content": f"{QUESTION}({at})"},), rollout=round_, sampling=sampling)
        for at in range(count)
    ]


async def ours(settings: TeacherSettings, wanted: list[Request]) -> float:
    """CPU milliseconds a request."""
    teacher = HttpTeacher(settings)
    async with opened(teacher):
        start = time.process_time()
        replies = await asyncio.gather(*(teacher.generate(request) for request in wanted))
        spent = time.process_time() - start
    assert len({reply.key for reply in replies}) == len(wanted)
    return 1e3 * spent / len(wanted)


async def theirs(settings: TeacherSettings, wanted: list[Request]) -> float:
    bodies = [sending(request, settings, request.key(settings.identity()), vllm=True) for request in wanted]
    room = asyncio.Semaphore(IN_FLIGHT)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), headers=headers) as session:

        async def post(path: str, body: bytes) -> object:
            async with room, session.post(settings.urls[0] + path, data=body) as response:
                return json.loads(await response.read())

        start = time.process_time()
        await asyncio.gather(*(post(one.path, one.body) for one in bodies))
        return 1e3 * (time.process_time() - start) / len(wanted)


def measured(name: str, words: int, count: int) -> None:
    simulated = SimulatorSettings(speech=Speech(words=words, sigma=0.0), latency=Latency(first_token_seconds=0.5))
    ours_ms, theirs_ms = [], []
    with SimulatorProcess(simulated) as simulator:
        settings = TeacherSettings(model=simulated.model, urls=(simulator.url,), max_in_flight=IN_FLIGHT)
        for number in range(ROUNDS):
            ours_ms.append(asyncio.run(ours(settings, requests(count, number))))
            theirs_ms.append(asyncio.run(theirs(settings, requests(count, number + ROUNDS))))
        peak = simulator.stats()["peak_in_flight"]
    mine, other = statistics.median(ours_ms), statistics.median(theirs_ms)
    told = f"ours {mine:.2f} ms CPU a request, aiohttp alone {other:.2f} ms, ratio {mine / other:.2f}"
    print(f"bench synth_client {name}: {told} (target under {TARGET_MS} ms; peak in flight {peak})", flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    measured("100 tokens", 35, count)
    measured("1,000 tokens", 400, count)


if __name__ == "__main__":
    main()
