"""A loop that is killed anywhere ends as one that was not, and measures no round twice that was over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RUNS = 24
PAUSE = "0.02"


def command(folder):
    return [sys.executable, "-m", "tests.mixing.loop.made", str(folder / "mix"), str(folder / "log"), PAUSE]


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def ended(folder):
    done = subprocess.run(command(folder), cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(folder):
    log = folder / "log"
    return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []


def left(folder):
    """What must be the same: mixture, proposals and observations."""
    names = ("mixture.json", "rounds/01.json", "rounds/02.json", "rounds/03.json")
    return {name: (folder / "mix" / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    ended(folder)
    assert len(measured(folder)) == RUNS
    return left(folder)


POINTS = {
    "before the first proposal": lambda folder: (folder / "mix" / "ground.json").exists(),
    "in the first round": lambda folder: len(measured(folder)) >= 3,
    "after the first round": lambda folder: (folder / "mix" / "rounds" / "01-measured.json").exists(),
    "in the last round": lambda folder: len(measured(folder)) >= RUNS - 2,
    "before the optimum": lambda folder: (folder / "mix" / "rounds" / "03-measured.json").exists(),
    "before the mixture": lambda folder: (folder / "mix" / "mix.json").exists(),
}


@pytest.mark.heavy
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_killed_loop_ends_as_one_that_was_not(whole, tmp_path, point):
    with subprocess.Popen(command(tmp_path), cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 120
        while not POINTS[point](tmp_path):
            assert time.monotonic() < deadline
            if child.poll() is not None:  # it was quicker than we look: nothing to kill, and all must be there
                break
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
    over = sum(
        len(json.loads(path.with_name(path.name.replace("-measured", "")).read_text())["mixtures"])
        for path in (tmp_path / "mix" / "rounds").glob("*-measured.json")
    )
    before = len(measured(tmp_path))
    ended(tmp_path)
    assert left(tmp_path) == whole
    again = len(measured(tmp_path)) - before
    assert again == RUNS - over  # rounds that were over are not measured again; the one that was not is, wholly
    assert not list((tmp_path / "mix").rglob("*.partial"))


def test_a_loop_that_is_killed_in_a_round_goes_on_from_its_proposal(tmp_path):
    with subprocess.Popen(command(tmp_path), cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 60
        while len(measured(tmp_path)) < 2:
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        child.send_signal(signal.SIGKILL)
    proposal = (tmp_path / "mix" / "rounds" / "01.json").read_bytes()
    first = measured(tmp_path)[:2]
    assert not (tmp_path / "mix" / "rounds" / "01-measured.json").exists()
    ended(tmp_path)
    assert (tmp_path / "mix" / "rounds" / "01.json").read_bytes() == proposal
    assert measured(tmp_path)[-RUNS:][:2] == first
