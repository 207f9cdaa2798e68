"""Run by vLLM's own interpreter: the teacher in process, told as JSON. `python engine_program.py MODEL CASE`."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
import time

from synth.replies import Failure, Reply, TeacherError
from synth.requests import Request, Sampling
from synth.teachers import InProcess, TeacherSettings
from synth.teachers.vllm_engine import EngineTeacher
from synth.teachers.vllm_watch import descendants, started


def request(text: str, rollout: int = 0, **sampling: object) -> Request:
    asked = Sampling(**({"temperature": 0.8, "max_tokens": 24} | sampling))  # type: ignore[arg-type]
    return Request(messages=({"role": "user", "content": text},), sampling=asked, rollout=rollout)


async def answer(teacher: EngineTeacher, wanted: Request) -> Reply | Failure:
    try:
        return await teacher.generate(wanted)
    except TeacherError as error:
        return error.failure


async def cases(teacher: EngineTeacher) -> dict[str, object]:
    one = request("What is 2 + 3?")
    first, again = await answer(teacher, one), await answer(teacher, one)
    assert isinstance(first, Reply)
    tokenizer = teacher.tokenizer
    text = tokenizer.apply_chat_template(list(one.messages), tokenize=False, add_generation_prompt=True)
    # Far more at once than one step reads: each has a seed of its own, and each is answered.
    crowd = await asyncio.gather(*(answer(teacher, request(f"What is {at} + 7?", at)) for at in range(150)))
    raw = await answer(teacher, Request(prompt="The capital of France", sampling=Sampling(max_tokens=8, logprobs=2)))
    judged = await answer(teacher, request("Yes or no?", logprobs=3, max_tokens=2))
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    guided = await answer(teacher, request("What is 2 + 3?", json_schema=schema, max_tokens=64))
    goes_on = Request(
        messages=({"role": "user", "content": "Count."}, {"role": "assistant", "content": "1, 2, 3,"}),
        continues=True, sampling=Sampling(temperature=0.0, max_tokens=8),
    )  # fmt: skip
    tools = Request(messages=one.messages, tools=({"type": "function", "function": {"name": "add"}},))
    cancelled = asyncio.create_task(answer(teacher, request("Tell a long story.", max_tokens=900)))
    await asyncio.sleep(0.5)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    start = time.perf_counter()
    after = await answer(teacher, request("What is 3 + 3?"))
    return {
        "first": first, "again": again, "decoded": tokenizer.decode(first.ids, skip_special_tokens=True),
        "rendered": tokenizer.encode(text, add_special_tokens=False), "bos": tokenizer.bos_token_id,
        "template": teacher.template_digest, "crowd": crowd, "raw": raw, "judged": judged, "guided": guided,
        "continued": await answer(teacher, goes_on), "tools": await answer(teacher, tools),
        "long": await answer(teacher, request("word " * 3000)), "after": after, "seconds": time.perf_counter() - start,
    }  # fmt: skip


async def main(model: str, case: str) -> None:
    arguments = {"dtype": "bfloat16", "max_model_len": 1024, "max_num_seqs": 64, "max_num_batched_tokens": 1024}
    inside = InProcess(path=model, device="cpu", arguments=arguments | {"kv_cache_memory_bytes": 1 << 30})
    teacher = EngineTeacher(TeacherSettings(model="small", in_process=inside))
    before = set(descendants(os.getpid()))
    await teacher.open()
    pids = sorted(set(descendants(os.getpid())) - before)
    if case == "killed":
        print(json.dumps(pids), flush=True)
        await asyncio.sleep(600)
    told = await cases(teacher) if case == "cases" else {}
    if case == "dies":
        waiting = asyncio.create_task(answer(teacher, request("Tell a long story.", max_tokens=900)))
        await asyncio.sleep(0.5)
        for pid in pids:
            os.kill(pid, 9)
        told = {"waiting": await asyncio.wait_for(waiting, 30), "later": await answer(teacher, request("Hello."))}
    await teacher.close()
    told["left"] = [pid for pid in pids if started(pid)]
    print(json.dumps(told, default=dataclasses.asdict), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
