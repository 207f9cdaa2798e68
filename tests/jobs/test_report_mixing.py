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
from jobs.report import write as write_report
from mixing.loop import Mix, run
from mixing.observations import Observations, Points
from shards.store import read_json, write_json
from tests.jobs import made_mix, made_output

HOSTILE = "<script>alert(1)</script>"
ARABIC = "\u0639\u0631\u0628\u064a"
NAMES = {
    2: ("code", "web"),
    3: (HOSTILE, "\u202eevil", ARABIC),
    17: (HOSTILE, ARABIC, *(f"domain-{n:02d}" for n in range(15))),
    40: (HOSTILE, ARABIC, *(f"domain-{n:02d}" for n in range(38))),
}


class Page(HTMLParser):
    """The tags that a page has, its attributes, and all of its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += f"{data} "


def looped(folder: Path, domains: tuple[str, ...]) -> dict[str, Any]:
    """mix.json of a loop over an analytic world of these domains."""

    def measure(table: Any) -> Observations:
        weights = np.column_stack([table[name].to_numpy() for name in domains])
        losses = 2 + 0.3 / np.sqrt(weights + 0.01)
        names = ["run-" + "-".join(f"{weight:.6f}" for weight in row) for row in weights.tolist()]
        points = Points.of(domains, weights, parameters=1e6, tokens=2e7)
        return Observations.of(points, [f"loss/{name}" for name in domains], losses, runs=names, flops=1e14)

    settings = Mix(runs=12, first_runs=12, tokens=1e9)
    run(settings, out=str(folder), available=dict.fromkeys(domains, 1e9), measure=measure)
    told: dict[str, Any] = json.loads((folder / "mix.json").read_text())
    return told


@pytest.mark.parametrize("count", sorted(NAMES))
def test_a_page_has_the_numbers_of_its_mix_and_no_script(count: int, tmp_path: Path) -> None:
    whole = looped(tmp_path, NAMES[2]) if count == 2 else made_mix.make(tmp_path, NAMES[count])
    told = mixing.told(str(tmp_path))
    assert told is not None
    assert {row["domain"]: row["share"] for row in told["domains"]} == whole["mixture"]["weights"]
    assert told["beside"][0]["value"] == min(row["value"] for row in told["beside"])
    html = Path(mixing.write(str(tmp_path))).read_text()
    page = Page(html)
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("href", "src", "xlink:href")]
    assert "\u202e" not in html
    drawn = min(count, mixture_charts.MOST_CHARTS) + min(count + 1, mixture_charts.MOST_CHARTS)
    assert page.tags.count("figure") == drawn + 1 + (count == 3)
    assert f"{100 * max(whole['mixture']['weights'].values()):.1f}%" in page.text
    assert ("more in mix.json" in page.text) == (count > mixture_charts.MOST_CHARTS)
    assert ("more domains in mix.json" in page.text) == (count > mixture_charts.MOST_AXES)


def test_every_part_of_a_mix_is_on_its_page(tmp_path: Path) -> None:
    made_mix.make(tmp_path, NAMES[3])
    text = " ".join(Page(Path(mixing.write(str(tmp_path))).read_text()).text.split())
    for told in (
        "12 of 12, 1 failed", "1500T", "75 s", "2.988 2.888 to 3.088", "3.1 3 to 3.2", "It ended because the budget",
        "power 100%", "Law: the least error", "max_epochs price 0.0417", f"max_epochs.{HOSTILE}", "groups.text.floor",
        "phase 2, 20.0% of the run", "natural 3.1000 0.1123 20.0% yes", "uniform 3.2000 0.2123 30.0% no",
        "move up to 15.0% of the tokens", "far from all (12)", "lower the loss by 0.02", "power 0.1000 0.900 100%",
        f"runs: few tell of {HOSTILE}",
    ):  # fmt: skip
        assert told in text, told
    assert "best run" not in text  # nothing is predicted of it


@pytest.mark.parametrize("gone", ["null", "missing"])
def test_parts_that_are_null_or_missing_are_left_out(gone: str, tmp_path: Path) -> None:
    whole = made_mix.make(tmp_path, NAMES[3])
    for key in [key for key in whole if key != "mixture"]:
        made_mix.write(tmp_path, {**whole, key: None} if gone == "null" else {k: whole[k] for k in whole if k != key})
        assert "nan" not in Page(Path(mixing.write(str(tmp_path))).read_text()).text
    alone = dict.fromkeys(whole["mixture"]) | {"weights": whole["mixture"]["weights"]}
    for key in whole["optimum"]:
        optimum = {**whole["optimum"], key: None}
        made_mix.write(tmp_path, {**whole, "mixture": alone, "optimum": optimum})
        assert Page(Path(mixing.write(str(tmp_path))).read_text()).tags.count("section") == 1


def test_a_report_of_a_run_that_mixed_and_trained_holds_both_against_each_other(tmp_path: Path) -> None:
    out = made_output.make(tmp_path / "out", rows=60)
    run_told: Any = read_json(str(out / "run.json"))
    tokens: Any = read_json(str(out / run_told["steps"][-1]["folder"] / "manifest.json"))
    whole = made_mix.make(out / "90-mix", NAMES[3])
    scores = {name: {"bits_per_byte": 1.0, "nats_per_token": 3.0} for name in NAMES[3]}
    accounts: dict[str, dict[str, Any]] = {
        "mix": {"mixed": {}},
        "train": {"trained": {"by_domain": scores, "bits_per_byte": 1.0}},
    }
    for number, (kind, account) in enumerate(accounts.items()):
        folder = f"9{number}-{kind}"
        write_json(str(out / folder / "manifest.json"), {**tokens, "step": kind, "kind": kind, **account})
        run_told["steps"].append({**run_told["steps"][-1], "step": kind, "kind": kind, "folder": folder})
    write_json(str(out / "run.json"), run_told)
    write_report(str(out))
    told = json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)["mixture"]
    assert told["objective"] == whole["mixture"]["objective"]
    rows = {row["metric"]: row for row in told["compared"]["rows"]}
    assert set(rows) == {"objective", *whole["mixture"]["predicted"]}
    assert {row["mean"] for row in rows.values()} == {3.0}
    page = Page((out / "report.html").read_text())
    assert "script" not in page.tags
    assert "intervals are of the proxies' scale" in page.text
    assert "No mixture was sought" not in page.text


def test_one_domain_is_a_page_without_a_law(tmp_path: Path) -> None:
    run(Mix(), out=str(tmp_path), available={"web": 1e6}, measure=lambda _: pytest.fail("there is nothing to measure"))
    page = Path(mixing.write(str(tmp_path))).read_text()
    assert "there is one domain" in page
    assert "Response" not in page


def test_what_was_trained_is_held_against_what_was_predicted(tmp_path: Path) -> None:
    looped(tmp_path, NAMES[2])
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


def test_what_is_not_allowed_is_dashed() -> None:
    band = {side: [1.0, 2.0, 3.0, 4.0] for side in ("low", "value", "high")}
    curve = {"weight": [0.0, 0.2, 0.4, 0.6], "objective": band}
    drawn = [[False, True, True, False], [True] * 4, [False] * 4]
    charts = [mixture_charts.response({**curve, "allowed": allowed}, 0.2, 0.0, 5.0) for allowed in drawn]
    parts = [(chart["path"].count("L"), [part.count("L") for part in chart["beyond"]]) for chart in charts if chart]
    assert parts == [(1, [1, 1]), (3, []), (0, [3])]


def test_three_domains_lie_in_a_triangle_each_at_its_corner() -> None:
    optimum = {"a": 0.5, "b": 0.3, "c": 0.2}
    design = [
        {"run": name, "weights": {other: float(other == name) for other in optimum}, "objective": 1.0 + at}
        for at, name in enumerate(optimum)
    ]
    chart = mixture_charts.ternary(design, optimum)
    assert chart is not None
    corners = {corner["name"]: (corner["x"], corner["y"]) for corner in chart["corners"]}
    assert {dot["title"][0]: (dot["x"], dot["y"]) for dot in chart["dots"]} == corners
    shades = [dot["shade"] for dot in chart["dots"]]
    assert shades == sorted(shades, reverse=True)  # the best last, on top
    assert mixture_charts.ternary(design, {"a": 0.5, "b": 0.5}) is None


def test_ends_of_an_axis_are_told_apart() -> None:
    assert mixture_charts.ends(7.27, 7.55) == ("7.27", "7.55")
    assert mixture_charts.ends(2.00101, 2.00302) == ("2.001", "2.003")
    assert mixture_charts.ends(2.001011, 2.001052) == ("2.00101", "2.00105")
