"""A program's end is one line and a code, and the message of an exception that is not ours is never told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from train.pretrain.trainer import TrainingError
from train.program import described, ended
from train.sft.refusals import SftError

SECRET = "SECRETWORDS"


def test_ours_are_told_and_others_are_not() -> None:
    assert described(SftError("data: none; give some")) == (2, "data: none; give some")
    assert described(TrainingError("step 3: no\nmemory"))[1] == "step 3: no memory"
    for error in (ValueError(SECRET), RuntimeError(SECRET), TypeError(SECRET), KeyError(SECRET)):
        code, line = described(error)
        assert (code, SECRET in line) == (1, False)
        assert type(error).__name__ in line
    assert described(FileNotFoundError(2, "No such file or directory", "/x"))[1].startswith("/x: no such file")


def test_the_last_words_go_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise SftError("data: none; give some")

    def interrupted() -> None:
        raise KeyboardInterrupt

    assert (ended(fails), ended(interrupted), ended(lambda: None)) == (2, 130, 0)
    assert capfd.readouterr().err == "data: none; give some\n"
    monkeypatch.setenv("GRISTMILL_LAST_WORDS", str(tmp_path / "words.json"))
    assert ended(fails) == 2
    assert capfd.readouterr().err == ""
    assert json.loads((tmp_path / "words.json").read_text()) == {"code": 2, "line": "data: none; give some"}


@pytest.mark.parametrize("name", ["pretrain", "sft", "proxies"])
def test_threads_that_wait_fall_asleep_soon(name: str) -> None:
    told = f"import os, sys, train.{name}.__main__; print(os.environ['GOMP_SPINCOUNT'], 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout == "1000 False\n"  # torch reads it when it is loaded
