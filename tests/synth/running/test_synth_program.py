"""The program, settings' mistakes in a line each, plans, and accounts that do not add up."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pydantic
import pytest

from bench.synth_run import ROOT, Answering, known, settings, write_rows
from synth.errors import SynthError
from synth.prompts import template
from synth.requests import Request
from synth.running import Assumptions, Budget, ConservationError, Synth, plan, run, status
from synth.running.accounts import Ledger, Requests
from synth.running.asking import _Queue, _Wanted
from synth.running.front_door import _conserved
from synth.running.meter import Meter
from synth.running.works import validated, works_of
from synth.simulator import Latency, SimulatorProcess, SimulatorSettings, Speech
from synth.store import Store
from synth.teachers.vllm_prefixes import prefix_key


def program(told: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "settings.json").write_text(told if isinstance(told, str) else json.dumps(told))
    return subprocess.run(
        [sys.executable, "-m", "synth.running", str(folder / "settings.json")], check=False, cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip


def test_the_program_runs_tells_progress_as_json_and_then_the_account(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", 20)
    with SimulatorProcess(SimulatorSettings(known=known(), speech=Speech(words=5))) as server:
        told = settings(server.url, tmp_path / "rows.jsonl", in_flight=8) | {"progress_seconds": 0.05}
        done = program({"settings": told, "out": str(tmp_path / "out"), "json": True}, tmp_path)
    *progress, account = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, "")
    assert progress[-1]["accepted"] == 80
    assert set(progress[-1]) >= {"accepted", "tokens_per_second", "cost", "truncated_share", "stopped"}
    assert account["items"]["answering"]["accepted"] == 20
    again = program({"settings": told, "out": str(tmp_path / "out"), "do": "status"}, tmp_path)
    assert json.loads(again.stdout) == account


def test_an_interrupted_program_keeps_what_was_replied_and_ends_with_130(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", 2000)
    with SimulatorProcess(SimulatorSettings(latency=Latency(first_token_seconds=0.05))) as server:
        told = settings(server.url, tmp_path / "rows.jsonl", in_flight=8)
        (tmp_path / "settings.json").write_text(json.dumps({"settings": told, "out": str(tmp_path / "out")}))
        with subprocess.Popen(
            [sys.executable, "-m", "synth.running", str(tmp_path / "settings.json")], cwd=ROOT, stderr=subprocess.PIPE
        ) as process:
            while sum(server.stats()["replies"].values()) <= 8:  # beyond those in flight, the first are stored
                time.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 130
    account = status(str(tmp_path / "out"))
    assert account.ended == "interrupted"
    assert account.requests.replied > 0
    assert account.requests.pending <= 8


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"tasks": []}, "tasks: Tuple should have at least 1 item"),
        ({"tasks": [{"rollouts": 1}]}, "tasks.0: it has no `kind`"),
        ({"tasks": [{"kind": "nothing"}]}, "tasks.0: task 'nothing': no such kind; there are"),
        ({"tasks": [{"kind": "no_module:Task"}]}, "tasks.0: kind no_module:Task cannot be imported"),
        (
            {"tasks": [{"kind": "bench.synth_run:Answering", "rolouts": 1}]},
            "tasks.0.rolouts: unknown; the settings",
        ),
        (
            {"tasks": [{"kind": "bench.synth_run:Answering", "rollouts": 0}]},
            "tasks.0.rollouts: Input should be gr",
        ),
        ({"tasks": [{"kind": "bench.synth_run:Answering"}] * 2}, "tasks.1: there is a task answering already"),
        ({"teachers": {"teacher": {"model": "m"}}}, "teachers.teacher: urls, vllm, in_process: give exactly one"),
        ({"budget": {"tokens": 0}}, "budget.tokens: Input should be greater than or equal to 1"),
        ({"sed": 1}, "sed: unknown; the settings of Synth are"),
    ],
)
def test_mistakes_in_settings_are_told_in_one_line(change: dict[str, Any], wrong: str, tmp_path: Path) -> None:
    told = settings("http://127.0.0.1:9", tmp_path / "rows.jsonl", in_flight=8) | change
    with pytest.raises(SynthError) as raised:
        validated(Synth, told, "")
    assert str(raised.value).startswith(wrong)
    assert "\n" not in str(raised.value)


def test_wrong_use_of_the_program_is_code_2_and_a_line(tmp_path: Path) -> None:
    told = settings("http://127.0.0.1:9", tmp_path / "rows.jsonl", in_flight=8)
    for wrong in ("{torn", {"settings": told}, {"settings": told | {"seed": -1}, "out": "out"}):
        done = program(wrong, tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert done.stderr.startswith(f"{tmp_path}/settings.json: ")


def test_a_plan_assumes_and_then_measures(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", 100)
    with SimulatorProcess(SimulatorSettings(known=known(), speech=Speech(words=5))) as server:
        told: Synth = validated(Synth, settings(server.url, tmp_path / "rows.jsonl", in_flight=8), "")
        teacher = dataclasses.replace(told.teachers["teacher"], price_completion=1e6, price_hour=10.0)
        told = dataclasses.replace(told, teachers={"teacher": teacher})
        [assumed] = plan(told, assumptions=Assumptions(requests=4, completion_tokens=50)).tasks
        assert (assumed.source, assumed.items, assumed.requests, assumed.cost) == ("assumed", 100, 400, 20_000)
        assert told.rows is not None
        pilot = dataclasses.replace(told, rows=dataclasses.replace(told.rows, limit=10))
        account = run(pilot, str(tmp_path / "out"))
        found = plan(told, str(tmp_path / "out"))
        [measured] = found.tasks
        assert (measured.source, measured.concluded, measured.requests) == ("measured", 10, 400)
        assert measured.accepted == 400
        assert measured.completion_tokens == 10 * account.teaching[0].completion_tokens
        assert found.hours == pytest.approx(0.9 * measured.completion_tokens / found.tokens_per_second / 3600)
        assert len(found.lines()) == 2


ABOUT = "purpose: testing\nsource: own\nlicence: MIT\nvariables: {question: the question}\n"


def test_a_prompt_template_is_part_of_a_fingerprint(tmp_path: Path) -> None:
    for name, text in (("a", "{{ question }}"), ("b", "{{ question }}!")):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "user.jinja").write_text(text)
        (tmp_path / name / "1" / "about.yaml").write_text(ABOUT)

    @pydantic.dataclasses.dataclass(frozen=True, kw_only=True)
    class Prompted(Answering):
        question_prompt: str = ""

    def print_of(**more: Any) -> bytes:
        return works_of(Synth(tasks=(Prompted(**more),)))[0].fingerprint()

    first = print_of(question_prompt=f"{tmp_path}/a")
    assert print_of(question_prompt=f"{tmp_path}/a") == first
    (tmp_path / "a" / "1" / "user.jinja").write_text("another {{ question }}")
    template.cache_clear()  # as another process would
    assert print_of(question_prompt=f"{tmp_path}/a") != first
    assert print_of() != print_of(rollouts=5)


@pytest.mark.parametrize(("pending", "sound"), [(2, True), (1, False), (3, False)])
def test_a_ledger_whose_parts_are_not_its_whole_is_an_error(pending: int, sound: bool) -> None:
    items = Ledger(total=10, accepted=5, rejected={"verify.wrong": 2}, failed={"flow": 1}, pending=pending)
    requests = Requests(sent=4, replied=1, failed=1, pending=pending)
    for check in (lambda: items.check("items"), requests.check):
        if sound:
            check()
        else:
            with pytest.raises(ConservationError):
                check()


def test_a_row_that_vanished_from_the_store_is_noticed(tmp_path: Path) -> None:
    class Counted:
        counts: ClassVar[Counter[str]] = Counter(rows=2, accepted=1, rejected=1)

    with Store.open(tmp_path) as store, pytest.raises(ConservationError, match="items seen: 2 were counted, 0 are"):
        _conserved(store, 1, Counted(), Meter(Budget(), {}, {}))  # type: ignore[arg-type]


def test_waiting_requests_are_handed_out_with_common_prefixes_side_by_side() -> None:
    async def handed_out() -> list[str]:
        queue = _Queue(prefix_key)
        answer: Any = asyncio.get_running_loop().create_future()
        for prompt in ("b 1", "a 1", "b 2", "a 2"):
            queue.put(_Wanted(request=Request(prompt=prompt), key=prompt, task=1, item="i", answer=answer))
        first = (await queue.get()).key
        queue.put(_Wanted(request=Request(prompt="a 0"), key="a 0", task=1, item="i", answer=answer))
        return [first, *[(await queue.get()).key for _ in range(4)]]

    assert asyncio.run(handed_out()) == ["a 1", "a 2", "b 1", "b 2", "a 0"]
