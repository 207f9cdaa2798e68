"""What surrounds vLLM, without vLLM: order, command lines, shares of a machine, and nothing that outlives its run."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth.errors import SynthError
from synth.requests import Request, Sampling
from synth.teachers import TeacherSettings, Vllm
from synth.teachers.vllm_environment import cores_of, engine_arguments, gpus_of, python_of, server_environment
from synth.teachers.vllm_prefixes import prefix_key
from synth.teachers.vllm_process import WATCH, ServerProcess, flags, serve_until
from synth.teachers.vllm_server import ServedTeacher
from synth.teachers.vllm_watch import started


def chat(*texts: str, **more: object) -> Request:
    roles = ("system", "user", "assistant")
    told = tuple({"role": role, "content": text} for role, text in zip(roles, texts, strict=False))
    return Request(messages=told, **more)  # type: ignore[arg-type]


def shared(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_prompts_that_begin_alike_stand_together_and_rollouts_of_one_beside_each_other() -> None:
    documents = [f"document {at} " * 50 for at in range(5)]
    wanted = [
        chat("You help.", f"{documents[at % 5]} Question {at // 5}?", rollout=rollout)
        for rollout in range(2)
        for at in range(20)
    ]
    ordered = sorted(wanted, key=prefix_key)
    assert [one.rollout for one in ordered] == [0, 1] * 20
    assert all(one.content() == next_.content() for one, next_ in zip(ordered[::2], ordered[1::2], strict=True))
    groups = [one.messages[1]["content"][:11] for one in ordered[::8]]
    assert len(set(groups)) == 5


@given(st.lists(st.text(alphabet="ab\0", max_size=6), min_size=2, max_size=12))
def test_no_prompt_shares_more_with_one_further_away_than_with_its_neighbour(texts: list[str]) -> None:
    ordered = [one.prompt or "" for one in sorted((Request(prompt=text) for text in texts), key=prefix_key)]
    for at in range(len(ordered) - 2):
        assert shared(ordered[at], ordered[at + 1]) >= shared(ordered[at], ordered[at + 2])


@given(st.text(), st.text(), st.floats(0, 2))
def test_any_request_has_a_place_that_depends_on_itself_alone(first: str, second: str, temperature: float) -> None:
    one = chat(first, second, sampling=Sampling(temperature=temperature))
    assert prefix_key(one) == prefix_key(dataclasses.replace(one))
    assert prefix_key(one) < prefix_key(dataclasses.replace(one, rollout=1))


def test_contents_in_parts_tools_and_calls_have_a_place_too() -> None:
    parts = Request(messages=({"role": "user", "content": [{"type": "text", "text": "a"}]},), tools=({"a": {"b": 1}},))
    assert prefix_key(parts) == prefix_key(parts)
    assert prefix_key(Request(messages=({"role": "assistant", "content": None, "tool_calls": [{}]},)))


def test_arguments_are_flags_as_vllm_takes_them() -> None:
    told = flags({"dtype": "bfloat16", "enforce-eager": True, "enable-prefix-caching": False, "seed": 0, "gone": None})
    assert told == ["--dtype", "bfloat16", "--enforce-eager", "--no-enable-prefix-caching", "--seed", "0"]


def test_on_a_cpu_prompts_are_read_whole_and_sampling_is_as_asked() -> None:
    told = engine_arguments("cpu")
    assert (told["enable_chunked_prefill"], told["generation_config"]) == (False, "vllm")
    assert "enable_chunked_prefill" not in engine_arguments("gpu")


def test_each_replica_has_gpus_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    vllm = Vllm(replicas=2, gpus_per_replica=2, devices=(4, 5, 6, 7))
    assert [server_environment(vllm, replica)["CUDA_VISIBLE_DEVICES"] for replica in (0, 1)] == ["4,5", "6,7"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c")
    assert gpus_of(Vllm(replicas=3), 2) == ["GPU-c"]
    with pytest.raises(SynthError, match=r"^vllm.replicas: 2 x 2 GPUs wanted, 3 there; ask for fewer, or device: cpu$"):
        gpus_of(Vllm(replicas=2, gpus_per_replica=2), 0)


def test_replicas_on_a_cpu_share_its_cores_and_one_alone_is_left_to_vllm() -> None:
    shares = [cores_of(replica, 2) for replica in (0, 1)]
    assert set().union(*shares) == os.sched_getaffinity(0)
    assert len(os.sched_getaffinity(0)) == 1 or not set(shares[0]) & set(shares[1])
    two = [server_environment(Vllm(replicas=2, device="cpu"), replica) for replica in (0, 1)]
    assert all(one["VLLM_CPU_OMP_THREADS_BIND"] for one in two)
    assert "VLLM_CPU_OMP_THREADS_BIND" not in server_environment(Vllm(device="cpu"), 0)
    own = Vllm(device="cpu", replicas=2, environment={"VLLM_CPU_OMP_THREADS_BIND": "0"})
    assert server_environment(own, 1)["VLLM_CPU_OMP_THREADS_BIND"] == "0"


def test_a_server_has_neither_this_process_modules_nor_its_thread_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    told = server_environment(Vllm(device="cpu"), 0)
    assert not {"PYTHONPATH", "OMP_NUM_THREADS"} & set(told)


def test_an_environment_without_vllm_is_told_with_what_makes_one() -> None:
    with pytest.raises(SynthError, match=r"^vllm.python: .* has no vLLM; .* bash .ci/set-up.sh teacher$"):
        python_of(Vllm(python=sys.executable))
    with pytest.raises(SynthError, match=r"has no vLLM"):
        python_of(Vllm(python="/nowhere/python"))


def watched(code: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", str(WATCH), str(os.getpid()), "0.5", sys.executable, "-c"]
    return subprocess.Popen([*command, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print(os.getpid(), child.pid, flush=True)
time.sleep(60)
"""


def gone(pids: list[int], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(started(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(started(pid) for pid in pids)


def pids_of(process: subprocess.Popen[bytes]) -> list[int]:
    assert process.stdout is not None
    return [int(pid) for pid in process.stdout.readline().split()]


@pytest.mark.parametrize("how", ["closed input", "terminated"])
def test_a_server_that_will_not_end_is_ended_with_all_that_it_started(how: str) -> None:
    with watched(STUBBORN) as process:
        pids = pids_of(process)
        assert process.stdin is not None
        if how == "terminated":
            process.terminate()
        else:
            process.stdin.close()
        assert process.wait(10) == 128 + signal.SIGKILL
        assert gone(pids)


def test_a_server_that_ends_by_itself_leaves_nothing_and_its_status_is_told() -> None:
    left = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.exit(7)"
    with watched(left) as process:
        pids = pids_of(process)
        assert process.wait(10) == 7
        assert gone(pids)


KILLED = """
import os, subprocess, sys, time
command = [sys.executable, "-I", sys.argv[1], str(os.getpid()), "0.5", sys.executable, "-c", sys.argv[2]]
subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
time.sleep(60)
"""


def test_a_server_does_not_outlive_a_run_that_was_killed() -> None:
    run = subprocess.Popen([sys.executable, "-c", KILLED, str(WATCH), STUBBORN], stdout=subprocess.PIPE)
    with run:
        pids = pids_of(run)
        run.kill()
        run.wait()
        assert gone(pids)


def test_processes_that_were_there_already_end_with_the_run_and_no_others_of_their_number() -> None:
    meant, other = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    marks = [f"{meant.pid}:{started(meant.pid)}", f"{other.pid}:1"]
    command = [sys.executable, "-I", str(WATCH), str(os.getpid()), "0.5", "--mourn", *marks]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as mourner:
        assert mourner.stdin is not None
        mourner.stdin.close()
        assert mourner.wait(10) == 0
        assert meant.wait(10) == -signal.SIGTERM
        assert other.poll() is None
        other.kill()
        other.wait()


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """An interpreter whose vLLM ends as soon as it starts."""
    package = tmp_path / "vllm"
    (package / "entrypoints" / "cli").mkdir(parents=True)
    for folder in (package, package / "entrypoints", package / "entrypoints" / "cli"):
        (folder / "__init__.py").touch()
    (package / "entrypoints" / "cli" / "main.py").write_text(
        "def main():\n    print('(APIServer pid=1) INFO 12-01 04:25:33 [core.py:133] loads', flush=True)\n"
        "    raise RuntimeError('no such device')\n"
    )
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(python)


def settings(python: str, **vllm: object) -> TeacherSettings:
    return TeacherSettings(model="m", vllm=Vllm(python=python, device="cpu", stop_timeout_seconds=0.5, **vllm))  # type: ignore[arg-type]


def test_a_server_that_dies_while_it_starts_is_told_with_what_it_said_last(broken: str, tmp_path: Path) -> None:
    progress = io.StringIO()
    teacher = ServedTeacher(settings(broken), logs=str(tmp_path / "logs"), progress=progress)
    with pytest.raises(SynthError, match=r"^vllm: the server ended while it started: RuntimeError: no such device;"):
        asyncio.run(teacher.open())
    assert teacher.servers == ()
    assert progress.getvalue().startswith("teacher m: starts 1 server(s) of vLLM; their logs: ")


def test_in_the_foreground_a_port_that_is_taken_is_told_before_anything_starts(broken: str, tmp_path: Path) -> None:
    async def taken() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(SynthError, match=rf"^port {port}: something listens there already; name another$"):
                serve_until(settings(broken), port=port, logs=str(tmp_path), progress=io.StringIO(), told="")

    asyncio.run(taken())


def test_a_server_that_takes_too_long_is_told(tmp_path: Path, broken: str) -> None:
    main = Path(broken).parent / "vllm" / "entrypoints" / "cli" / "main.py"
    main.write_text("import time\ndef main():\n    time.sleep(60)\n")
    server = ServerProcess(settings(broken, start_timeout_seconds=0.5), 0, python=broken, log=tmp_path / "log")

    async def wait() -> None:
        async with aiohttp.ClientSession() as session:
            await server.ready(session)

    server.start()
    try:
        with pytest.raises(SynthError, match=r"^vllm: no answer within start_timeout_seconds \(0.5\); its log: "):
            asyncio.run(wait())
    finally:
        server.stop()
    assert not server.alive
