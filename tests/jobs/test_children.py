"""Programs that a command starts end with it, however it ends, and an interrupt of theirs is one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs import children

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, signal, sys, time
from train.program import ended
def work():
    print("train: here", os.getpid(), file=sys.stderr, flush=True)
    {work}
sys.exit(ended(work))
"""


def program(folder: Path, monkeypatch: pytest.MonkeyPatch, work: str) -> None:
    (folder / "made_program.py").write_text(PROGRAM.format(work=work))
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{ROOT}")


def test_an_interrupt_of_the_program_alone_interrupts_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
    with pytest.raises(KeyboardInterrupt):
        children.run("made_program", {}, say=lambda line: None)


def test_a_program_whose_output_nobody_reads_any_more_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = "signal.signal(signal.SIGTERM, lambda *_: (sys.stderr.write('x' * (1 << 20)), os._exit(1)))"
    program(tmp_path, monkeypatch, f"{ends}; print(file=sys.stderr, flush=True); time.sleep(60)")

    def interrupted(line: str) -> None:
        if not line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        children.run("made_program", {}, say=interrupted)


def test_a_program_ends_when_what_started_it_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "time.sleep(60)")
    starts = "from jobs import children; children.run('made_program', {}, say=lambda line: print(line, flush=True))"
    with subprocess.Popen([sys.executable, "-c", starts], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        number = int(starter.stdout.readline().split()[-1])
        starter.kill()
    deadline = time.monotonic() + 20
    while runs(number) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not runs(number)


def runs(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
