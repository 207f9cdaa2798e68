"""The mixture in the report: its numbers are mix.json's, names are escaped, and what is not there is left out."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.report import mixing, mixture_charts
from mixing.loop import Mix, run
from mixing.observations import Observations, Points

HOSTILE = "<script>alert(1)</script>"
NAMES = {2: ("code", "web"), 3: (HOSTILE, "\u202eevil", "web"), 17: tuple(f"domain-{n:02d}" for n in range(17))}


class Page(HTMLParser):
    """The tags that a page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


def made(folder: Path, domains: tuple[str, ...]) -> dict[str, Any]:
    """mix.json of a loop over an analytic world of these domains."""

    def measure(table: Any) -> Observations:
        weights = np.column_stack([table[name].to_numpy() for name in domains])
        losses = 2 + 0.3 / np.sqrt(weights + 0.01)
        names = [f"run-{hash(tuple(row)) & 0xFFFFFF:06x}" for row in weights.round(9).tolist()]
        points = Points.of(domains, weights, parameters=1e6, tokens=2e7)
        return Observations.of(points, [f"loss/{name}" for name in domains], losses, runs=names, flops=1e14)

    settings = Mix(runs=12, first_runs=12, tokens=1e9)
    run(settings, out=str(folder), available=dict.fromkeys(domains, 1e9), measure=measure)
    told: dict[str, Any] = json.loads((folder / "mix.json").read_text())
    return told


@pytest.mark.parametrize("count", sorted(NAMES))
def test_a_page_has_the_numbers_of_its_mix_and_no_script(count: int, tmp_path: Path) -> None:
    whole = made(tmp_path, NAMES[count])
    told = mixing.told(str(tmp_path))
    assert told is not None
    assert {row["domain"]: row["share"] for row in told["domains"]} == whole["mixture"]["weights"]
    assert told["beside"][0]["value"] == min(row["value"] for row in told["beside"])
    page = Path(mixing.write(str(tmp_path))).read_text()
    tags = Page(page).tags
    assert "script" not in tags
    assert "\u202e" not in page
    assert tags.count("figure") == min(count, mixture_charts.MOST_CHARTS) + min(count + 1, mixture_charts.MOST_CHARTS)
    assert f"{100 * max(whole['mixture']['weights'].values()):.1f}%" in page


def test_one_domain_is_a_page_without_a_law(tmp_path: Path) -> None:
    run(Mix(), out=str(tmp_path), available={"web": 1e6}, measure=lambda _: pytest.fail("there is nothing to measure"))
    page = Path(mixing.write(str(tmp_path))).read_text()
    assert "there is one domain" in page
    assert "Response" not in page


def test_what_was_trained_is_held_against_what_was_predicted(tmp_path: Path) -> None:
    made(tmp_path, NAMES[2])
    trained = {"by_domain": {"web": {"bits_per_byte": 1.0, "nats_per_token": 2.5}}}
    told = mixing.told(str(tmp_path), trained)
    assert told is not None
    assert [row["metric"] for row in told["compared"]["rows"]] == ["loss/web"]
    assert mixing.told(str(tmp_path), {"by_domain": {}})["compared"] is None  # type: ignore[index]


def test_a_folder_without_a_mix_tells_nothing(tmp_path: Path) -> None:
    assert mixing.told(str(tmp_path)) is None


def test_charts_leave_out_what_is_no_number() -> None:
    curve = {
        "weight": [0.0, 0.5, 1.0],
        "allowed": [True, False, True],
        "objective": {"low": [1, None, 1], "value": [2, None, 2], "high": [3, None, 3]},
    }
    chart = mixture_charts.response(curve, 0.5, 1.5, 2.5)
    assert chart is not None
    assert "nan" not in json.dumps(chart).lower()
    assert mixture_charts.scatter([{"measured": None, "predicted": 1.0}]) is None
    assert mixture_charts.response({**curve, "weight": [0.3, 0.3, 0.3]}, 0.3, 1.0, 2.0) is None
    one = mixture_charts.scatter([{"measured": 1.0, "predicted": 1.0}])
    assert one is not None
    assert all(math.isfinite(dot["x"]) for dot in one["dots"])
