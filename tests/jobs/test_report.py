from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import UserError
from jobs.report import write
from jobs.report.charts import columns, flow
from jobs.report.compare import compare
from jobs.report.histograms import HEIGHT, WIDTH, histogram
from jobs.report.numbers import duration, percent, plain, short, size
from jobs.report.render import render
from jobs.report.thresholds import declared
from jobs.report.visible import CUT, cut, line, visible
from shards.manifest import buckets
from shards.store import read_json, write_json
from tests.jobs.made_output import HOSTILE, make

Report = dict[str, Any]


class Page(HTMLParser):
    """What a browser would make of a page: elements, attributes, and the text in each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "rect", "path", "line", "br", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make(tmp_path_factory.mktemp("made") / "out", rows=900)
    write(str(made))
    return made


@pytest.fixture(scope="module")
def report(out: Path) -> Report:
    told: Report = json.loads((out / "report.json").read_text())
    return told


@pytest.fixture(scope="module")
def html(out: Path) -> str:
    return (out / "report.html").read_text()


def test_the_numbers_are_those_of_the_manifests(out: Path, report: Report) -> None:
    accounts = [
        read_json(str(out / step["folder"] / "manifest.json")) for step in read_json(str(out / "run.json"))["steps"]
    ]
    rows = report["verdict"]["rows"]
    assert rows["in"] == accounts[0]["rows"]["in"] == rows["kept"] + rows["dropped"] + rows["quarantined"]
    assert [step["rows"] for step in report["steps"]] == [account["rows"] for account in accounts]
    dropped = {(drop["step"], drop["rule"]): drop["rows"] for drop in report["drops"] if drop["rows"]}
    assert dropped == {
        (account["step"], rule): count for account in accounts for rule, count in account["rules"].items()
    }
    assert sum(domain["rows"] for domain in report["domains"]) == rows["kept"]
    assert sum(domain["share"] for domain in report["domains"]) == pytest.approx(1)
    assert sum(date["rows"] for date in report["dates"]["rows"]) + report["dates"]["unknown"] == rows["kept"]
    assert sum(row["rows"] for row in report["quarantine"]) == rows["quarantined"]
    assert report["verdict"]["tokens"] == accounts[-1]["tokens"]


def test_everything_balances_and_a_lost_row_is_told(out: Path, report: Report, tmp_path: Path) -> None:
    assert report["balance"]
    assert all(check["holds"] for check in report["balance"])
    other = make(tmp_path / "out", rows=60)
    path = str(other / "04-quality" / "manifest.json")
    account = read_json(path)
    account["rows"]["in"] += 1
    write_json(path, account)
    write(str(other))
    told = json.loads((other / "report.json").read_text())
    assert [check["law"] for check in told["balance"] if not check["holds"]] == [
        "quality: rows in = kept + dropped + quarantined",
        "rows kept by language = rows into quality",
    ]
    assert "do not add up" in (other / "report.html").read_text()


def test_duplicates_are_told_with_survivors_and_similarity(report: Report) -> None:
    exact, minhash = report["duplicates"]
    assert (exact["step"], minhash["step"]) == ("exact", "minhash")
    for found in (exact, minhash):
        assert found["removed"] == sum(drop["rows"] for drop in report["drops"] if drop["step"] == found["step"]) > 0
        assert sum(size["clusters"] for size in found["sizes"]) == found["clusters"]
        pair = found["largest"][0]["pairs"][0]
        assert pair["similarity"] >= 0.8
        assert pair["kept_pieces"]
        assert pair["pieces"]
    assert sum(row["rows"] for row in minhash["similarities"]) == minhash["removed"]


def test_thresholds_are_drawn_with_the_exact_share_beyond(out: Path, report: Report) -> None:
    words = next(signal for signal in report["signals"] if signal["signal"] == "words")
    (mark,) = words["thresholds"]
    assert (mark["rule"], mark["side"], mark["value"]) == ("gopher_quality.min_words", "min", 50.0)
    below = sum(rows for edge, rows in words["buckets"] if edge < 48)
    assert below <= mark["rows"] <= below + dict(map(tuple, words["buckets"])).get(48.0, 0)
    assert mark["share"] == mark["rows"] / words["rows"]


def test_samples_are_the_same_again_and_cut(out: Path, report: Report, html: str) -> None:
    before = (out / "report.json").read_bytes(), (out / "report.html").read_bytes()
    write(str(out))
    assert before == ((out / "report.json").read_bytes(), (out / "report.html").read_bytes())
    assert len(report["kept_samples"]) == 10
    texts = [row["text"] for row in report["kept_samples"]] + [
        row["text"] for group in report["dropped_samples"] for row in group["samples"]
    ]
    assert all(len(text) <= CUT * 8 for text in texts if text)
    assert all(group["samples"] for group in report["dropped_samples"])


def test_hostile_text_stays_text(html: str) -> None:
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert "alert(1)" in "".join(page.texts)
    assert not tags & {"script", "img", "iframe", "object", "embed", "form", "link", "base", "b>", "i"}
    for _, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
        assert "src" not in attributes
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\u2028]", html)
    assert "[U+202E]" in html
    assert "[ESC]" in html
    assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|(?<=onerror=alert\(2\)&gt; )\d+", html)
    assert page.open in ([], ["html"])


def test_the_page_needs_nothing_but_itself(html: str) -> None:
    policy = next(attributes["content"] for tag, attributes in Page(html).elements if attributes.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    styles = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in styles
    assert "@import" not in styles
    assert "prefers-color-scheme: dark" in styles
    assert "@media print" in styles
    assert "&#34;" not in styles


def test_each_chart_says_what_it_shows(html: str) -> None:
    page = Page(html)
    charts = [attributes for tag, attributes in page.elements if tag == "svg"]
    assert len(charts) > 10
    assert all(chart.get("aria-label") or chart.get("aria-hidden") for chart in charts)
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        assert "<title>" in svg
    anchors = {attributes["href"] for tag, attributes in page.elements if tag == "a"}
    ids = {"#" + str(attributes["id"]) for _, attributes in page.elements if "id" in attributes}
    assert anchors <= ids


def test_every_section_stands_also_for_an_output_with_nothing_in_it(tmp_path: Path) -> None:
    out = make(tmp_path / "out", rows=0)
    html = Path(write(str(out))).read_text()
    for said in (
        "Nothing was dropped",
        "No document was kept",
        "No kept document has a date",
        "No document holds a benchmark item",
        "Nothing was trained",
        "No mixture was sought",
    ):
        assert said in html
    assert html.count("<section") == 18


def test_dropped_texts_that_were_not_kept_are_said_to_be_so(tmp_path: Path) -> None:
    out = make(tmp_path / "out", rows=200, keep_dropped=0.0)
    assert "Its text was not kept" in Path(write(str(out))).read_text()


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    out = make(tmp_path / "out", rows=60)
    run = read_json(str(out / "run.json"))
    run["steps"] = run["steps"][:7]
    write_json(str(out / "run.json"), run)
    html = Path(write(str(out))).read_text()
    assert "not finished: minhash, decontaminate have not run" in html


def test_a_folder_without_a_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        write(str(tmp_path))
    assert (
        str(caught.value)
        == f"{tmp_path}: no run has finished a step there; give the output folder of a run: gristmill run RECIPE"
    )


def test_settings_that_differ_from_their_defaults_are_marked(report: Report, html: str) -> None:
    language = next(step for step in report["settings"] if step["step"] == "language")
    told = {row["setting"]: row["changed"] for row in language["settings"]}
    assert told == {"keep": True, "min_score": True}
    classes = [attributes.get("class") for tag, attributes in Page(html).elements if tag == "tr"]
    changed = [row for step in report["settings"] for row in step["settings"] if row["changed"]]
    assert classes.count("changed") == len(changed)


def test_the_page_shows_numbers_of_the_json_only(report: Report, html: str) -> None:
    assert render(report) == html


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0"),
        (999, "999"),
        (9999, "9,999"),
        (10000, "10k"),
        (12345, "12.3k"),
        (999_949, "1M"),
        (4_560_000, "4.56M"),
        (2.5e9, "2.5B"),
        (0.25, "0.25"),
        (None, ""),
    ],
)
def test_counts_for_people(number: float | None, said: str) -> None:
    assert short(number) == said


@pytest.mark.parametrize(
    ("part", "of", "said"),
    [(0, 10, "0%"), (10, 10, "100%"), (1, 100_000, "<0.1%"), (99_999, 100_000, ">99.9%"), (1, 3, "33.3%"), (1, 0, "")],
)
def test_shares_never_round_to_none_or_all(part: int, of: int, said: str) -> None:
    assert percent(part, of) == said


def test_sizes_seconds_and_values_for_people() -> None:
    assert [size(n) for n in (0, 999, 1000, 1_500_000)] == ["0 B", "999 B", "1 kB", "1.5 MB"]
    assert [duration(s) for s in (0.05, 4.2, 190, 18_720, None)] == ["50 ms", "4.2 s", "3 min 10 s", "5 h 12 min", ""]
    assert [plain(v) for v in (50.0, 0.65, 0.001234567, 100_000.0)] == ["50", "0.65", "0.001235", "100,000"]


@given(st.text())
def test_visible_text_has_no_hidden_character(text: str) -> None:
    shown = visible(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]", shown)
    assert visible(shown) == shown
    assert "\n" not in line(text)


def test_visible_names_what_it_replaces_and_leaves_joiners() -> None:
    assert visible("a\x1b[31mb\r\nc\u202ed") == "a[ESC][31mb\nc[U+202E]d"
    assert visible("می‌خواهم 👩‍👧") == "می‌خواهم 👩‍👧"
    assert visible("a" + "\u0301" * 50) == "a" + "\u0301" * 4
    assert cut("x" * 700) == "x" * 600 + "\u2026"
    assert cut("x" * 600) == "x" * 600
    assert cut(None) == ""


@given(st.text(max_size=300), st.text(max_size=300))
def test_compared_texts_are_whole(left: str, right: str) -> None:
    both = compare(left, right)
    assert "".join(text for text, _ in both.left if text != "\u2026").replace("\u2026", "") in visible(left).replace(
        "\u2026", ""
    )
    assert (both.same_until is None) == (left == right)


def test_a_comparison_begins_shortly_before_the_difference() -> None:
    base = "word " * 1000
    both = compare(base + "one end", base + "two end")
    assert both.same_until == len(base)
    assert ("one", True) in both.left
    assert ("two", True) in both.right
    assert both.left[0] == ("\u2026", False)


def _signal(values: list[float], **thresholds: Any) -> dict[str, Any]:
    import pyarrow as pa

    counted = sorted(buckets(pa.array(values, pa.float64())).items())
    return {
        "signal": "s",
        "step": "q",
        "rows": len(values),
        "buckets": [list(pair) for pair in counted],
        "thresholds": [thresholds] if thresholds else [],
    }


@pytest.mark.parametrize(
    ("values", "axis"),
    [
        ([0, 1, 2, 3, 8], "linear"),
        ([0.1, 0.5, 1.0, 0.0], "linear"),
        ([3.5, 4.25, 6.1], "linear"),
        ([5, 50, 500, 0], "logarithmic"),
        ([], "linear"),
        ([0.0], "linear"),
        ([7.0], "linear"),
        ([-1.5, 2.25], "linear"),
    ],
)
def test_histograms_choose_their_axis_and_stay_inside(values: list[float], axis: str) -> None:
    chart = histogram(_signal(values))
    assert chart["axis"] == axis
    for bar in chart["bars"]:
        assert 0 <= bar["x"] <= WIDTH
        assert bar["x"] + bar["width"] <= WIDTH + 1
        assert bar["height"] <= HEIGHT + 0.01
    if values and max(values) > 0:
        assert max(bar["height"] for bar in chart["bars"]) == pytest.approx(HEIGHT)


@given(
    st.lists(st.floats(min_value=-1e6, max_value=1e9, allow_nan=False), max_size=40),
    st.floats(min_value=-10, max_value=1e6),
)
def test_any_signal_has_a_histogram(values: list[float], threshold: float) -> None:
    mark = {"rule": "r", "side": "min", "sign": ">=", "value": threshold, "rows": 1, "share": 0.1}
    chart = histogram(_signal(values, **mark))
    assert all(bar["width"] > 0 for bar in chart["bars"])
    assert len(chart["marks"]) <= 1


def test_bars_are_split_at_the_threshold_and_marked_beyond_it() -> None:
    mark = {"rule": "r", "side": "min", "sign": ">=", "value": 50.0, "rows": 2, "share": 0.5}
    chart = histogram(_signal([10.0, 49.0, 50.0, 51.0, 400.0], **mark))
    cut_at = chart["marks"][0]["x"]
    for bar in chart["bars"]:
        assert bar["beyond"] == (bar["x"] + bar["width"] / 2 < cut_at)


def test_the_flow_keeps_its_widths() -> None:
    steps = [
        {
            "step": "a",
            "kind": "quality",
            "rows": {"in": 100, "kept": 60, "dropped": 39, "quarantined": 1},
            "top_rule": "r",
        },
        {
            "step": "b",
            "kind": "exact",
            "rows": {"in": 60, "kept": 60, "dropped": 0, "quarantined": 0},
            "top_rule": None,
        },
    ]
    chart = flow(steps, "rows")
    assert chart is not None
    wide = {(node["kind"], node["y"]): node["width"] for node in chart["nodes"]}
    assert list(wide.values()) == [200.0, 120.0, 78.0, 2.0, 120.0]
    assert flow([], "rows") is None
    assert columns([], "a", "b")["bars"] == []


def test_steps_say_their_own_thresholds() -> None:
    from filters import Language, Quality, Url

    told = {limit.rule: limit for limit in declared(Quality())}
    assert (
        told["gopher_quality.min_words"].signal,
        told["gopher_quality.min_words"].sign,
        told["gopher_quality.min_words"].value,
    ) == ("words", ">=", 50.0)
    assert (told["gopher_quality.max_words"].side, told["fineweb.max_newline_ratio"].value) == ("max", 0.3)
    assert "gopher_quality.min_words" not in {
        limit.rule for limit in declared(Quality(gopher_quality={"min_words": None}))
    }
    assert {limit.rule: limit.signal for limit in declared(Language(keep=("eng_Latn",)))} == {
        "abstained": "letters",
        "min_score": "likeliest_score",
    }
    (soft,) = declared(Url())
    assert (soft.rule, soft.sign, soft.value) == ("soft_words", "<", 2.0)


def test_the_hostile_sample_is_hostile() -> None:
    assert "<script>" in HOSTILE
