"""The whole way on a real model: vLLM on this CPU solves word problems, answers are verified, and a student is trained.

`GRISTMILL_PROBLEMS=200 python -m pytest -m heavy tests/synth/test_real_teacher.py` is the long version.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from demo.word_problems import problems
from shards.store import read_json
from synth.exports import Export
from synth.exports.licences import Terms
from synth.made import export
from synth.running import Account, Rows, Synth
from synth.store import Store
from synth.teachers.small import small_model, small_teacher
from synth.verdicts import Outcome
from synth.verifiers import verify
from synth.whole import run
from train.sft import Chat, Sft
from train.sft import run as fine_tune

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(1400),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the libraries that read the GGUF file
]

COUNT = int(os.environ.get("GRISTMILL_PROBLEMS", "24"))
ROLLOUTS = 4
TASK = {
    "kind": "distill",
    "prompt": "question",
    "rollouts": {"wave": 2, "cap": ROLLOUTS, "accepted": None, "tempering": {"tau": 1.3, "reference": 0.5}},
    "answering": {"max_tokens": 128, "finish": {"truncated_in_answer": "accept"}},
    "choice": {"keep": None},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_model(str(tmp_path_factory.mktemp("small") / "model"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in problems(COUNT)}


@pytest.fixture(scope="module")
def settings(rows: dict[str, dict[str, Any]], model: str, tmp_path_factory: pytest.TempPathFactory) -> Synth:
    path = tmp_path_factory.mktemp("rows") / "problems.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    teachers = {"teacher": small_teacher(folder=model)}
    return Synth(teachers=teachers, rows=Rows(files=(str(path),)), tasks=(TASK,), select={"traces": {"min_tokens": 1}})


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("made") / "out"


@pytest.fixture(scope="module")
def account(settings: Synth, out: Path) -> Account:
    return run(settings, str(out), say=print)


def test_every_rollout_of_every_problem_is_accounted_for(account: Account) -> None:
    items, samples = account.items["distill"], account.samples["distill"]
    assert (items.total, items.pending, items.failed) == (COUNT, 0, {})
    assert samples.total == COUNT * ROLLOUTS == account.requests.sent == account.requests.replied
    assert samples.accepted > 0
    assert samples.accepted + sum(samples.rejected.values()) == samples.total


def test_temperatures_follow_what_was_solved_before(account: Account) -> None:
    heats = {one.temperature for one in account.teaching}
    assert len(heats) > 1
    assert min(heats) >= round(0.5 / 1.3, 1)
    assert max(heats) <= round(0.5 * 1.3, 1)


def test_accepted_samples_are_right_and_their_ids_are_their_text(
    account: Account, rows: dict[str, dict[str, Any]], out: Path, model: str
) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{model}/tokenizer.json")
    replies = {one["key"]: one for one in pq.read_table(out / "requests").to_pylist()}
    accepted = 0
    for sample in pq.read_table(out / "samples").to_pylist():
        if sample["outcome"] != "accepted":
            continue
        accepted += 1
        answer = json.loads(sample["messages"])[-1]["content"]
        assert verify("math", rows[sample["item"]]["gold"], answer).outcome is Outcome.RIGHT
        reply = replies[sample["keys"][-1]]
        assert tokenizer.decode(reply["ids"], skip_special_tokens=True).strip() == reply["text"].strip()
    assert accepted == account.samples["distill"].accepted


def test_a_second_run_needs_no_teacher_and_planted_answers_are_judged_right(
    settings: Synth, account: Account, out: Path
) -> None:
    gone = replace(settings.teachers["teacher"], vllm=None, urls=("http://127.0.0.1:9",))
    again = run(replace(settings, teachers={"teacher": gone}), str(out))
    assert again.samples == account.samples
    trust = read_json(str(out / "trust.json"))
    assert trust is not None
    [math] = trust["planted"]
    assert math["false_positive"]["count"] == math["false_negative"]["count"] == 0


def test_a_student_takes_some_steps_on_the_export(account: Account, out: Path, model: str, tmp_path: Path) -> None:
    made = Export(model=model, terms={"teacher": Terms(licence="Apache-2.0")})
    with Store.open(out, read_only=True) as store:
        written, _ = export(store, str(tmp_path / "data"), made)
    assert written.written == account.samples["distill"].accepted
    table = pq.read_table(tmp_path / "data" / "data")
    assert written.trained_tokens == sum(map(sum, table["loss_mask"].to_pylist()))
    student = fine_tune(
        Sft(
            chat=Chat(), sequence_tokens=512, batch_sequences=1, steps=3, learning_rate=1e-4, warmup_steps=1,
            held_out=0.0, precision="fp32",
        ),
        model=model, data=(str(tmp_path / "data" / "data"),), out=str(tmp_path / "student"),
    )  # fmt: skip
    assert student is not None
    assert (tmp_path / "student" / "model" / "model.safetensors").exists()
