"""Real vLLM on this CPU with SmolLM2-135M: it answers as told, survives what is killed, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from synth.errors import SynthError
from synth.replies import Failure, Reply, TeacherError
from synth.requests import Request, Sampling, digest, seed_of
from synth.teachers import TeacherSettings, Vllm, opened
from synth.teachers.small import MODEL, small_model, small_teacher
from synth.teachers.vllm_environment import python_of
from synth.teachers.vllm_process import free_port
from synth.teachers.vllm_server import ServedTeacher
from synth.teachers.vllm_watch import descendants, started

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the libraries that read the GGUF file
]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def python() -> str:
    try:
        return python_of(Vllm(device="cpu"))
    except SynthError as error:
        pytest.fail(str(error))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(str(tmp_path_factory.mktemp("small") / "model"))


def question(at: int, rollout: int = 0) -> Request:
    asked = Sampling(temperature=0.8, max_tokens=24)
    return Request(messages=({"role": "user", "content": f"What is {at} + 7?"},), sampling=asked, rollout=rollout)


def gone(pids: Sequence[int], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(started(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not any(started(pid) for pid in pids)


def of_servers(teacher: ServedTeacher) -> list[int]:
    return [pid for server in teacher.servers for pid in (server.pid, *descendants(server.pid))]


def two_replicas(model: str, python: str) -> TeacherSettings:
    settings = small_teacher(folder=model, python=python, replicas=2)
    assert settings.vllm is not None
    vllm = dataclasses.replace(settings.vllm, arguments=settings.vllm.arguments | {"kv-cache-memory-bytes": 1 << 29})
    return dataclasses.replace(settings, vllm=vllm)


def test_the_small_model_is_made_once_and_kept(model: str) -> None:
    config = Path(model) / "config.json"
    before = config.stat().st_mtime_ns
    assert small_model(model) == model
    assert config.stat().st_mtime_ns == before
    assert "chat_template.jinja" in os.listdir(model)


def test_a_folder_that_holds_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    with pytest.raises(SynthError, match=r"there, but holds no model; remove it or name another$"):
        small_model(str(tmp_path))
    assert os.listdir(tmp_path) == ["mine"]


def test_servers_answer_survive_a_kill_and_leave_nothing(model: str, python: str, tmp_path: Path) -> None:
    teacher = ServedTeacher(two_replicas(model, python), logs=str(tmp_path), progress=(progress := io.StringIO()))

    async def ask() -> tuple[list[int], Reply, Reply, list[Reply]]:
        async with opened(teacher):
            first = await teacher.generate(question(1))
            again = await teacher.generate(question(1))
            running = [asyncio.create_task(teacher.generate(question(at))) for at in range(120)]
            await asyncio.sleep(2.0)
            before = of_servers(teacher)
            # The server itself, as the kernel does when memory runs out: what it started is orphaned.
            os.kill(descendants(teacher.servers[0].pid)[0], signal.SIGKILL)
            replies = await asyncio.gather(*running)
            while "is back" not in progress.getvalue():
                await asyncio.sleep(0.5)
            pids = sorted({*before, *of_servers(teacher)})
            await teacher.generate(question(2))
        return pids, first, again, replies

    pids, first, again, replies = asyncio.run(ask())
    assert len(replies) == 120
    assert all(reply.ids and reply.prompt_ids for reply in replies)
    assert len(pids) > 6
    assert gone(pids)
    assert (first.text, first.ids) == (again.text, again.ids)
    assert first.seed == seed_of(first.key)
    check_ids(model, first)
    assert "died and is started again" in progress.getvalue()


def check_ids(model: str, reply: Reply) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    assert tokenizer.decode(list(reply.ids or ()), skip_special_tokens=True) == reply.text
    text = tokenizer.apply_chat_template(list(question(1).messages), tokenize=False, add_generation_prompt=True)
    assert list(reply.prompt_ids or ()) == tokenizer.encode(text, add_special_tokens=False)
    # This template's BOS begins each turn as well: one more in front is what must not be.
    assert list(reply.prompt_ids or ()).count(tokenizer.bos_token_id) == text.count(tokenizer.bos_token)


SERVED = """
import asyncio, sys
from synth.teachers.small import small_teacher
from synth.teachers.vllm_server import ServedTeacher
from synth.teachers.vllm_watch import descendants

async def main():
    teacher = ServedTeacher(small_teacher(folder=sys.argv[1], python=sys.argv[2]), progress=None)
    await teacher.open()
    print(*[pid for one in teacher.servers for pid in (one.pid, *descendants(one.pid))], flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_servers_end_when_their_run_is_killed(model: str, python: str) -> None:
    with subprocess.Popen([sys.executable, "-c", SERVED, model, python], cwd=ROOT, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        pids = [int(pid) for pid in run.stdout.readline().split()]
        run.kill()
    assert len(pids) >= 4
    assert gone(pids)


SMALL = """
import sys
from synth.teachers.small import serve_small
serve_small(folder=sys.argv[1], python=sys.argv[2], port=int(sys.argv[3]))
"""


def test_the_small_teacher_in_the_foreground_tells_how_it_is_asked_and_ends_when_told(model: str, python: str) -> None:
    port = free_port()
    command = [sys.executable, "-c", SMALL, model, python, str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        while "answers at" not in (line := run.stdout.readline()):
            assert line
        body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 4})
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/chat/completions", body.encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as response:
            assert json.load(response)["usage"]["completion_tokens"] > 0
        pids = descendants(run.pid)
        run.terminate()
        assert run.stdout.read().endswith("ended\n")
        assert run.wait(30) == 0
    assert gone(pids)


def program(python: str, model: str, case: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [python, str(Path(__file__).with_name("engine_program.py")), model, case]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def told(python: str, model: str, case: str) -> Any:
    with program(python, model, case) as run:
        assert run.stdout is not None
        lines = run.stdout.read().splitlines()
    assert run.returncode == 0
    return json.loads(lines[-1])


def test_in_process_all_is_as_asked(model: str, python: str) -> None:
    found = told(python, model, "cases")
    first, again = found["first"], found["again"]
    assert (first["text"], first["ids"], first["key"]) == (again["text"], again["ids"], again["key"])
    assert first["text"] == found["decoded"]
    assert first["prompt_ids"] == found["rendered"]
    assert first["seed"] == seed_of(first["key"])
    assert first["prompt_ids"][0] == found["bos"] != first["prompt_ids"][1]
    assert found["template"] == digest((Path(model) / "chat_template.jinja").read_text())
    assert len({reply["key"] for reply in found["crowd"] if reply["ids"]}) == 150
    assert len(json.loads(found["raw"]["logprobs"])["tokens"]) == len(found["raw"]["ids"])
    judged = json.loads(found["judged"]["logprobs"])["content"]
    assert [len(step["top_logprobs"]) for step in judged] == [3] * len(found["judged"]["ids"])
    assert isinstance(json.loads(found["guided"]["text"])["sum"], int)
    assert "4" in found["continued"]["text"]
    assert (found["tools"]["stage"], found["tools"]["final"]) == ("refused", False)
    assert found["long"]["error"] == "the prompt and max_tokens do not fit the model's context"
    assert (found["long"]["stage"], found["long"]["final"]) == ("prompt", True)
    assert found["after"]["ids"]
    assert found["left"] == []


def test_in_process_an_engine_that_is_killed_fails_what_waits_and_hangs_nothing(model: str, python: str) -> None:
    found = told(python, model, "dies")
    assert found["waiting"]["stage"] == "wait"
    assert found["waiting"]["error"].startswith("the engine died")
    assert found["later"]["error"] == "the engine is not running"
    assert found["left"] == []


def test_in_process_the_engine_ends_when_its_run_is_killed(model: str, python: str) -> None:
    with program(python, model, "killed") as run:
        assert run.stdout is not None
        pids = json.loads(run.stdout.readline())
        run.kill()
        assert gone(pids)


def test_without_vllm_the_engine_says_what_makes_it() -> None:
    from synth.teachers import InProcess
    from synth.teachers.vllm_engine import EngineTeacher

    teacher = EngineTeacher(TeacherSettings(model="m", in_process=InProcess(device="cpu")))
    with pytest.raises(SynthError, match=r"^in_process: no vLLM in this environment; bash .ci/set-up.sh teacher makes"):
        asyncio.run(teacher.open())
    with pytest.raises(TeacherError) as failed:
        asyncio.run(teacher.generate(question(1)))
    assert isinstance(failed.value.failure, Failure)
