"""The simulator as a process: the same replies after a restart, faults by share, counters, an end with its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pydantic import ValidationError

from synth.errors import SynthError
from synth.simulator import Faults, Known, Rule, SimulatorProcess, SimulatorSettings, Speech, decode

KNOWN = {"a": Known(gold="12", skill=0.5)}


def post(url: str, body: dict[str, object], path: str = "/v1/chat/completions") -> dict[str, object]:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        told: dict[str, object] = json.load(response)
    return told


def chat(seed: int, text: str = "[item a]", **more: object) -> dict[str, object]:
    messages = [{"role": "user", "content": text}]
    return {"model": "simulated", "messages": messages, "seed": seed, "max_tokens": 400, "temperature": 1.0} | more


def test_a_restarted_simulator_says_the_same_to_the_same_and_other_things_to_others() -> None:
    replies = []
    for seed in (1, 1, 2):
        with SimulatorProcess(SimulatorSettings(known=KNOWN, seed=seed)) as simulator:
            replies.append([post(simulator.url, chat(at)) for at in range(10)])
    assert replies[0] == replies[1]
    assert replies[0] != replies[2]
    assert len({json.dumps(reply["choices"]) for reply in replies[0]}) == 10


def test_ids_usage_and_truncation_agree() -> None:
    with SimulatorProcess(SimulatorSettings(known=KNOWN, context_tokens=500)) as simulator:
        whole = post(simulator.url, chat(0, return_token_ids=True))
        short = post(simulator.url, chat(0, return_token_ids=True, max_tokens=7))
        raw = post(simulator.url, {"model": "simulated", "prompt": "[item a]", "max_tokens": 300,
                                   "return_token_ids": True}, "/v1/completions")  # fmt: skip
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post(simulator.url, chat(0, max_tokens=501))
        with pytest.raises(urllib.error.HTTPError, match="404"):
            post(simulator.url, chat(0, model="another"))
    choice = whole["choices"][0]  # type: ignore[index]
    assert decode(choice["token_ids"]) == choice["message"]["content"]
    assert whole["usage"]["completion_tokens"] == len(choice["token_ids"])  # type: ignore[index]
    assert short["choices"][0]["finish_reason"] == "length"  # type: ignore[index]
    assert len(short["choices"][0]["token_ids"]) == 7  # type: ignore[index]
    assert decode(raw["choices"][0]["prompt_token_ids"]).strip() == "[item a]"  # type: ignore[index]


def test_split_reasoning_that_uses_up_the_tokens_leaves_no_content() -> None:
    settings = SimulatorSettings(known=KNOWN, speech=Speech(reasoning="split"))
    with SimulatorProcess(settings) as simulator:
        message = post(simulator.url, chat(0, max_tokens=5))["choices"][0]["message"]  # type: ignore[index]
    assert message["content"] is None
    assert len(message["reasoning"]) == 15


def test_probabilities_of_a_rule_are_told_as_logprobs() -> None:
    rules = (Rule(match="judge", probabilities={"A": 0.75, "B": 0.25}),)
    with SimulatorProcess(SimulatorSettings(rules=rules)) as simulator:
        choice = post(simulator.url, chat(0, "judge", logprobs=True, top_logprobs=2))["choices"][0]  # type: ignore[index]
    top = choice["logprobs"]["content"][0]["top_logprobs"]
    assert [entry["token"] for entry in top] == ["A", "B"]
    assert top[0]["logprob"] == pytest.approx(-0.2877, abs=1e-4)


def test_faults_come_by_their_shares_and_no_request_meets_more_than_the_most() -> None:
    faults = Faults(too_many=0.3, server_error=0.3, most=2)
    statuses: list[int] = []
    with SimulatorProcess(SimulatorSettings(known=KNOWN, faults=faults)) as simulator:
        for seed in range(100):
            for _ in range(3):
                try:
                    post(simulator.url, chat(seed))
                    break
                except urllib.error.HTTPError as error:
                    statuses.append(error.code)
                    error.close()
        stats = simulator.stats()
    assert set(statuses) == {429, 500, 503}
    assert len(stats["replies"]) == 100
    assert set(stats["replies"].values()) == {1}
    first = sum(count > 1 for count in stats["attempts"].values())
    assert 40 <= first <= 80
    assert sum(stats["attempts"].values()) == 100 + sum(stats["faults"].values())


def test_settings_that_cannot_be_say_so() -> None:
    for wrong in ({"reply": ()}, {"reply": ("a",), "probabilities": {"b": 1.0}}, {"match": "(", "reply": ("a",)}):
        with pytest.raises(ValidationError):
            Rule(**({"match": "x"} | wrong))  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="more than 1 together"):
        Faults(hang=0.6, reset=0.6)
    with pytest.raises(SynthError, match=r"simulator: did not start: .*script: no file"):
        SimulatorProcess(SimulatorSettings(script="absent.py:reply")).start()


def test_it_ends_on_a_signal_with_nothing_to_say_and_with_the_one_who_started_it(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    process = subprocess.Popen([sys.executable, "-m", "synth.simulator", str(path)], stdout=-1, stderr=-1, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    process.terminate()
    assert process.communicate(timeout=10) == ("", "")
    assert process.returncode == 0

    code = (
        "from synth.simulator import *; import time\n"
        "s = SimulatorProcess(); s.start(); print(s.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=-1, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    for _ in range(100):
        if not _runs(child):
            return
        time.sleep(0.1)
    pytest.fail("the simulator outlived its parent")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
