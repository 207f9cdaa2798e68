"""`gristmill train`, `budget` and `export` from outside: each mistake is one line with its place and its mend."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from jobs import children
from jobs.command_line import invoke
from tests.train.exports.made import make_tokens

SFT = {"output": "o", "model": "m", "data": ["d.jsonl"], "epochs": 1}


def told(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int) -> str:
    assert invoke(arguments) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data": []}, "data: expected a path at least, got an empty list; write data: [folder/name]"),
        ({"data": ["a", 3]}, "data: expected paths in the list, got 3"),
        ({"data": "a"}, "data: expected a list, got 'a'"),
        ({"output": ""}, "output: expected text, got ''"),
        ({"lora": {"targets": []}}, "lora.targets: "),
        ({"chat": {"template_date": "2024-13-45"}}, "chat.template_date: 2024-13-45 is no day of the calendar"),
    ],
)
def test_settings_that_cannot_be_are_told(
    changes: dict[str, Any], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps({**SFT, **changes}))
    assert said in told(capsys, ["train", "sft", str(tmp_path / "a.yaml")], 2)


def test_a_number_without_end_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps(SFT).replace("1}", "1, learning_rate: 1e400}"))
    assert "learning_rate: expected a number, got '1e400'" in told(
        capsys, ["train", "sft", str(tmp_path / "a.yaml")], 2
    )


def test_an_empty_settings_file_is_told_of_its_own_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("")
    said = told(capsys, ["train", "sft", str(tmp_path / "a.yaml")], 2)
    assert said.endswith("is empty; begin with output:, model:, data:\n")


def test_a_mistake_that_the_program_finds_is_told_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(json.dumps({**SFT, "model": str(tmp_path), "output": str(tmp_path / "o")}))
    assert invoke(["train", "sft", str(tmp_path / "a.yaml")]) == 2
    assert capfd.readouterr().err == (
        f"{tmp_path}: no tokenizer.json; save the tokenizer there with transformers' save_pretrained\n"
    )


def test_a_program_that_is_killed_is_told_of_by_its_signal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(
        "import os, sys\nprint('sft: step 1', file=sys.stderr, flush=True)\nos.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    lines: list[str] = []
    with pytest.raises(children.ChildFailedError, match=f"ended by signal {signal.SIGKILL:d}"):
        children.run("dies", {}, say=lines.append)
    assert lines == ["sft: step 1"]


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["domains=[a]"], "--set domains=[a]: no setting of mds"),
        (["out=3"], "--set out=3: no setting of mds"),
        (["shard_byte=1"], "did you mean 'shard_bytes'?"),
        (["shard_bytes=64XB"], "'64XB' is no size"),
        (["shard_bytes"], "is not KEY=VALUE"),
    ],
)
def test_settings_of_an_export_that_it_has_not_are_told(
    sets: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_tokens(tmp_path / "tokens", [("a", [[5, 6]])])
    words = [word for text in sets for word in ("--set", text)]
    assert said in told(capsys, ["export", str(tmp_path / "tokens"), "--to", "mds", *words], 2)


def test_an_export_says_what_it_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_tokens(tmp_path / "tokens", [("a", [[5, 6]])])
    words = ["--set", "sequence_tokens=10", "--destination", str(tmp_path / "out")]
    assert invoke(["export", str(tmp_path / "tokens"), "--to", "mds", *words]) == 0
    assert (
        "left out: 1 documents and 3 tokens (the end of a domain, shorter than a sequence)" in capsys.readouterr().err
    )


@pytest.mark.parametrize("url", ["nosuch://x/y"])
def test_a_storage_that_does_not_exist_is_told(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_tokens(tmp_path / "tokens", [("a", [[5, 6]])])
    said = told(capsys, ["export", str(tmp_path / "tokens"), "--to", "mds", "--destination", url], 2)
    assert said == f"{url}: no such kind of storage; as s3://, gs://, or a local folder\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--flops", "1,3B"], "--flops '1,3B': is not a number from 0 on"),
        (["--flops", "1e20", "--unique", "a=1B", "--unique", "a=2B"], "--unique a: stands twice"),
        (["--flops", "1e20", "--bytes-per-token", "4", "--tokenizer", "a=4,1.5"], "--tokenizer a=4,1.5: write NAME="),
        (["--flops", "1e20", "--plot", "a.png"], "--plot a.png: is no name of an SVG"),
        (["--flops", "1e20", "--plot", ""], "is no name of an SVG"),
    ],
)
def test_a_budget_tells_which_option_is_wrong(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in told(capsys, ["budget", *arguments], 2)


def test_an_accelerator_may_be_written_large(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["budget", "--flops", "1e20", "--accelerator", "H100"]) == 0
