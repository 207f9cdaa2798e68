"""Metrics on disk, the line of progress, and the picture of a run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from train.pretrain import metrics
from train.pretrain.metrics import Metrics, Progress, read_metrics
from train.pretrain.plot import plot_losses


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_lies_beyond_a_checkpoint_is_measured_again(tmp_path: Path) -> None:
    first = Metrics(str(tmp_path))
    first.write({"step": 0})
    size = first.settle()
    first.write({"step": 1})
    first.close()
    second = Metrics(str(tmp_path))
    second.truncate(size)
    second.write({"step": 1, "again": True})
    second.close()
    assert list(read_metrics(str(tmp_path))) == [{"step": 0}, {"step": 1, "again": True}]


def test_nothing_is_written_where_there_is_no_folder() -> None:
    nowhere = Metrics(None)
    nowhere.write({"step": 0})
    assert nowhere.settle() == 0
    nowhere.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    return now


def test_a_plain_line_comes_every_thirty_seconds_and_at_the_end(clock: list[float]) -> None:
    told = io.StringIO()
    progress = Progress(told, steps=1000)
    for step in range(1000):
        clock[0] += 0.125
        progress.step(step, 2.5, 1234.5)
    lines = told.getvalue().splitlines()
    assert len(lines) == 5
    assert lines[0] == "train: step 240 of 1,000  loss 2.5000  1,234 tokens/s  95 s left"
    assert lines[-1].startswith("train: step 1,000 of 1,000")


def test_a_terminal_has_one_line_that_lives(clock: list[float]) -> None:
    told = Terminal()
    progress = Progress(told, steps=10)
    for step in range(10):
        clock[0] += 0.3
        progress.step(step, 2.5, 10.0)
    progress.say("done")
    assert told.getvalue().count("\r\x1b[K") == 11
    assert told.getvalue().count("\n") == 2


@pytest.mark.parametrize(("seconds", "told"), [(0.0, "0 s"), (119.4, "119 s"), (120, "2 min"), (7300, "2 h 1 min")])
def test_durations(seconds: float, told: str) -> None:
    assert metrics._duration(seconds) == told


def test_a_picture_shows_losses_and_domains_and_is_the_same_each_time(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"kind": "step", "step": step, "loss": 5.0 - step / 10} for step in range(20)]
    score = {"bits_per_byte": 1.5}
    rows += [{"kind": "evaluation", "step": 20, "by_domain": {"books": score, "empty": {"bits_per_byte": None}}}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    drawn = Path(plot_losses(str(tmp_path))).read_bytes()
    ElementTree.fromstring(drawn)
    for text in (b"training loss (nats a token)", b"held-out bits per byte", b"books"):
        assert text in drawn
    assert Path(plot_losses(str(tmp_path))).read_bytes() == drawn


def test_a_run_without_any_row_still_has_a_picture(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("")
    ElementTree.fromstring(Path(plot_losses(str(tmp_path))).read_bytes())


def test_names_of_domains_are_drawn_as_they_are(tmp_path: Path) -> None:
    names = ["_hidden", "$\\frac{$", "a_$x^2$", "<script>", "\u65e5\u672c"]
    rows = Metrics(str(tmp_path))
    score = {"bits_per_byte": 1.0}
    rows.write({"kind": "evaluation", "step": 1, "by_domain": dict.fromkeys(names, score)})
    rows.close()
    drawn = ElementTree.fromstring(Path(plot_losses(str(tmp_path))).read_bytes())
    assert set(names) <= {"".join(one.itertext()).strip() for one in drawn.iter("{http://www.w3.org/2000/svg}text")}
