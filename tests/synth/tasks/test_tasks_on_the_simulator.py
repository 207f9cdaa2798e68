"""Every kind in one recipe, by the driver, over HTTP, against the simulated teacher and real verifiers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synth.items import SampleKind
from synth.running import Synth, run
from synth.running.works import validated
from synth.simulator import Faults, Known, Rule, SimulatorProcess, SimulatorSettings, Speech
from synth.store import Store

SAID = (
    (
        "further tasks",
        "<task>Describe the {{draw}} ways of {{draw}} harbours</task><task>Rank {{draw}} old engines now</task>",
    ),
    ("fixed set of labels", "no"),
    ("Make up one example", "<input></input><output>Done by {{draw}}.</output>"),
    ("Do they ask for the same", "different"),
    ("Make the task below|The task below is one of", "<task>Write {{draw}} lines about the {{draw}} harbours</task>"),
    ("<persona>", "<task>Plan the {{draw}} days of my harbour</task>"),
    (
        "<text>\n(\\[item q\\d\\]).* row (\\d)",
        "<translation>{{1}} Combien de pommes reste-t-il à la fermière de la rangée {{2}} ?</translation>",
    ),
    ("To which request", "<task>How do bees find home?</task>"),
    ("<\\|im_start\\|>user", "What are the {{draw}} best harbours?"),
)
KINDS: dict[str, dict[str, Any]] = {
    "distill": {"choice": {"keep": None}},
    "best_of": {"replies": 4, "prompt": "solve_boxed", "score_by": "verifier"},
    "preference": {"replies": 6, "prompt": "solve_boxed"},
    "process_labels": {"solutions": 2, "completions": 2},
    "evolve": {"rounds": 2},
    "persona": {"tasks": 2, "prompts": ["persona_math", "persona_code"]},
    "magpie": {"count": 3},
    "back_translation": {"instructions": 2},
    "self_instruct": {"instructions": 6, "requests": 2, "tasks": 2},
    "translated": {"languages": ["fr"], "share": 1.0, "check_language": False},
}
ROWS = 4


@pytest.fixture(scope="module")
def simulator() -> Iterator[SimulatorProcess]:
    rules = [Rule(match=match, reply=(reply,)) for match, reply in SAID]
    rules.append(Rule(match="good an answer it is", reply=('{"grade": 2}', '{"grade": 5}')))
    known = {f"q{at}": Known(gold=str(at), skill=0.6) for at in range(10)}
    faults = Faults(too_many=0.05, server_error=0.03, reset=0.02)
    made = SimulatorSettings(known=known, rules=tuple(rules), speech=Speech(words=8), faults=faults)
    with SimulatorProcess(made) as process:
        yield process


def recipe(url: str, folder: Path) -> Synth:
    rows = [
        {
            "id": f"r{at}", "prompt": f"[item q{at}] How many apples does the farmer of row {at} have left?",
            "gold": str(at), "verifier": "math", "text": "" if at % 2 else f"Bees fly home by the sun. Case {at}.",
        }
        for at in range(ROWS)
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    teacher = {"model": "simulated", "urls": [url], "backoff_seconds": 0.01, "timeout_seconds": 20.0}
    told = {
        "teachers": {"teacher": teacher, "judge": teacher}, "rows": {"files": [str(folder / "rows.jsonl")]},
        "tasks": [{"kind": kind, **settings} for kind, settings in KINDS.items()],
    }  # fmt: skip
    made: Synth = validated(Synth, told, "")
    return made


def test_every_kind_runs_to_an_account_that_adds_up_and_a_second_run_asks_nothing(
    simulator: SimulatorProcess, tmp_path: Path
) -> None:
    told = recipe(simulator.url, tmp_path)
    account = run(told, str(tmp_path / "out"))
    asked = sum(simulator.stats()["attempts"].values())
    again = run(told, str(tmp_path / "out"))
    assert sum(simulator.stats()["attempts"].values()) == asked
    assert again.samples == account.samples
    assert account.requests.failed == account.requests.pending == 0
    for kind in KINDS:
        assert account.items[kind].pending == 0
        assert account.samples[kind].accepted, (kind, account.samples[kind])
        assert not any(reason.startswith("flow") for reason in account.items[kind].failed)
    with Store.open(tmp_path / "out", read_only=True) as store:
        kinds = {task: {sample.kind for name, sample in store.samples() if name == task} for task in KINDS}
    assert SampleKind.PAIR in kinds["preference"]
    assert kinds["process_labels"] == {SampleKind.STEPS}
