"""The documentation says what the code says: settings and defaults, rules, formats, errors, views, queries, options."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
import typer

from jobs.command_line import app
from jobs.steps import STEPS
from jobs.verbs.explain import explain
from shards.views import connect
from synth.simulator import Rule, SimulatorProcess, SimulatorSettings
from tests.jobs.corpus import corpus, mill, write_jsonl

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    match = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert match, f"no heading {title!r}"
    rest = text[match.end() :]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> dict[str, list[str]]:
    """The rows of the tables of a text by the name in their first cell."""
    cells = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {row[0].strip(" `"): [cell.strip(" |") for cell in row] for row in cells}


def names(text: str) -> set[str]:
    """What stands in backticks."""
    return set(re.findall(r"`([^`\n]+)`", text))


def unlike(text: str, name: str) -> list[str]:
    """The settings of a step or section that the tables of a text lack, or tell with another default."""
    told, wrong = rows(text), []
    for setting in explain(name).settings:
        if name in STEPS and setting.name in ("name", "domains"):
            continue  # told once, for all steps
        said = told.get(setting.name, ["", "nothing"])[1].replace("`", "")
        if said != setting.default:
            wrong.append(f"{setting.name}: the page says {said}, the code {setting.default}")
    return wrong


@pytest.mark.parametrize("kind", STEPS)
def test_every_step_is_told_with_all_its_settings_and_defaults(kind: str) -> None:
    told = section(page("steps.md"), kind)
    assert unlike(told, kind) == []
    assert kind in section(page("recipe.md"), "Steps")


@pytest.mark.parametrize(("kind", "entry"), STEPS.items())
def test_every_signal_and_column_of_a_step_is_told(kind: str, entry: Any) -> None:
    step = entry.load()
    adds = getattr(step, "adds", None)
    known = [*getattr(step, "signals", pa.schema([])).names, *(adds.names if isinstance(adds, pa.Schema) else [])]
    assert set(known) - names(section(page("steps.md"), kind)) == set()


def test_every_rule_of_a_step_is_told() -> None:
    told = page("steps.md")
    for kind, values in (("url", ["https://a.example/"]), ("language", ["some words of a language"])):
        step = STEPS[kind].load()()
        rules = {check.rule for check in step.checks(step.measure(values))}
        assert rules - names(section(told, kind)) == set()
    found = {
        "extract": ("ingest/extraction.py", "ingest/gates.py"),
        "exact": ("dedup/exact.py",),
        "minhash": ("dedup/minhash.py",),
        "decontaminate": ("dedup/decontaminate.py",),
    }
    for kind, files in found.items():
        assert codes(files) - names(section(told, kind)) == set()


def test_every_preset_is_told_with_its_thresholds() -> None:
    told = section(page("steps.md"), "quality")
    for preset in explain("quality").presets:
        table = rows(section(told, preset["name"]))
        for rule in preset["rules"]:
            limit = "off" if rule["threshold"] is None else f"{rule['threshold']:g}"
            sign = "<" if rule["bound"] == "min" else ">"
            wanted = f"`{rule['signal']}`, off" if limit == "off" else f"`{rule['signal']}` {sign} {limit}"
            assert table[rule["rule"]][1] == wanted
        assert set(table) == {rule["rule"] for rule in preset["rules"]}


def test_the_step_of_ones_own_on_the_page_works() -> None:
    lines = section(page("steps.md"), "python").splitlines()
    code = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ") or not line))
    space: dict[str, Any] = {}
    exec(compile(code, "steps.md", "exec"), space)
    judged = space["Shouting"]()(pa.record_batch({"text": pa.array(["WHAT?", "quiet", ""], pa.large_string())}))
    assert judged.kept_rows.tolist() == [1, 2]
    assert judged.drops.column("value").to_pylist() == [0.8]


def test_sources_are_told_with_all_settings_formats_and_types() -> None:
    from ingest.source import TYPES, Format

    told = page("sources.md")
    assert unlike(section(told, "Settings"), "source") == []
    assert {*get_args(Format)} - names(section(told, "Formats")) == set()
    assert {*TYPES} - names(section(told, "Settings")) == set()


def test_every_rule_and_error_of_reading_is_told() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "ingest").glob("*.py"))]
    reading = codes(file for file in files if Path(file).stem not in ("gates", "extraction", "extract_worker"))
    assert {"http_status", "empty", "bad_json", "truncated", "zstd"} <= reading
    assert reading - names(page("sources.md")) == set()


ERRORS = {"BadRow": 0, "lose": 1, "Damaged": 0, "GateError": 0}
"""Calls that quarantine, and which of their arguments is the error's class."""


def codes(files: Any) -> set[str]:
    """Rules and error classes that stand in code as text."""
    found: set[str] = set()
    for file in files:
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found |= set(_codes_of(node))
    return found


def _codes_of(call: ast.Call) -> Iterator[str]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    said = [keyword.value for keyword in call.keywords if keyword.arg in ("rule", "error")]
    if called in ERRORS and len(call.args) > ERRORS[called]:
        said.append(call.args[ERRORS[called]])
    for value in said:
        for node in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_keys_of_a_recipe_and_of_tokens_are_told_with_their_defaults() -> None:
    assert unlike(page("recipe.md"), "recipe") == []
    told = section(page("tokens.md"), "Settings")
    assert {setting.name for setting in explain("tokens").settings} - names(told) == set()


@pytest.mark.parametrize(("name", "file"), [("train", "pretrain"), ("sft", "sft"), ("proxies", "proxies")])
def test_settings_of_training_are_told_with_their_defaults(name: str, file: str) -> None:
    assert unlike(section(page(f"training/{file}.md"), "Settings"), name) == []


@pytest.mark.parametrize(
    ("name", "title"), [("mix", "Settings"), ("constraints", "Constraints"), ("objective", "Objective")]
)
def test_settings_of_a_mixture_are_told_with_their_defaults(name: str, title: str) -> None:
    told = unlike(section(page("mixing/mix.md"), title), name)
    elsewhere = ("proxies.", "constraints.", "objective.")  # on a page, or under a heading, of their own
    assert [line for line in told if not line.startswith(elsewhere)] == []


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small output of a recipe that has something in each view but quarantine's texts."""
    folder = tmp_path_factory.mktemp("docs")
    data = corpus(folder / "data", files=2, count=60)
    (data / "part-9.jsonl").write_text('{"text": 12}\n')
    planted = "which stone of the mill turns slowly above the other one when the river runs low in a dry season"
    write_jsonl(data / "part-8.jsonl", [{"id": "planted", "text": f"{planted} as everybody in the village knew"}])
    write_jsonl(folder / "bench.jsonl", [{"prompt": planted, "id": "mill-1"}])
    steps = [
        {"step": "language"},
        {"step": "quality", "rules": ["gopher_repetition"]},
        {"step": "exact"},
        {"step": "minhash"},
        {"step": "decontaminate", "benchmarks": [str(folder / "bench.jsonl")]},
    ]
    rules = (
        Rule(match=r"Grade from", reply=('{{"grade": 5}}',)),
        Rule(match=r"(?s).*", reply=("<task>Write of {draw}.</task>",)),
    )
    with SimulatorProcess(SimulatorSettings(rules=rules)) as teacher:
        one = {"model": "simulated", "urls": [teacher.url]}
        synth = {"teachers": {"teacher": one, "judge": one}, "tasks": [{"kind": "back_translation"}]}
        mill(data, folder / "out", steps=steps, tokens={"vocab_size": 300}, synth=synth)
    return folder / "out"


def test_every_view_is_told_with_its_columns(made: Path) -> None:
    told = section(page("queries.md"), "Views")
    with connect(str(made)) as connection:
        views = [
            name
            for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
            if not name.startswith(("signals_", "_"))
        ]
        columns = {name: [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall()] for name in views}
        counts = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in views}
    assert all(counts.values()), f"the made output says nothing of a view: {counts}"
    columns["signals"] = ["step", "id"]  # the rest is told by step
    columns["documents"].remove("stars")  # the made source's own
    del columns["documents_stored"]
    for view, known in columns.items():
        assert set(known) - names(section(told, view)) == set()
    assert set(views) == set(re.findall(r"^### (\w+)$", told, re.MULTILINE))


def queries() -> list[str]:
    return re.findall(r"^```sql\n(.*?)^```$", page("queries.md"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("query", queries())
def test_every_query_of_the_page_runs(query: str, made: Path) -> None:
    with connect(str(made)) as connection:
        assert connection.execute(query).description


def test_there_are_queries() -> None:
    assert len(queries()) >= 8


COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
GROUPS = {name: command.commands for name, command in COMMANDS.items() if hasattr(command, "commands")}
INNER = [(group, name) for group, commands in GROUPS.items() for name in commands]


@pytest.mark.parametrize(("group", "name"), INNER)
def test_every_command_of_a_group_is_told_with_each_of_its_options(group: str, name: str) -> None:
    told = section(page(f"verbs/{group}.md"), next_title(page(f"verbs/{group}.md"), f"gristmill {group} {name}"))
    options = {
        option for parameter in GROUPS[group][name].params for option in parameter.opts if option.startswith("-")
    }
    assert [option for option in sorted(options - {"--help"}) if not re.search(rf"(?<![\w-]){option}\b", told)] == []


def next_title(text: str, begins: str) -> str:
    """The first heading that begins so."""
    found = re.search(rf"^#+ ({re.escape(begins)}.*)$", text, re.MULTILINE)
    assert found, f"no heading begins with {begins!r}"
    return found[1]


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_verb_has_a_page_that_names_each_of_its_options(verb: str) -> None:
    told = page(f"verbs/{verb}.md")
    assert told.startswith(f"# gristmill {verb}")
    options = {option for parameter in COMMANDS[verb].params for option in parameter.opts if option.startswith("-")}
    assert [option for option in sorted(options - {"--help"}) if not re.search(rf"(?<![\w-]){option}\b", told)] == []


def test_the_index_lists_every_page_once_and_links_lead_somewhere() -> None:
    listed = re.findall(r"\]\(([^)#]+)\)", page("index.md"))
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in PAGES if path != DOCS / "index.md")
    for path in PAGES:
        for link in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            target, _, anchor = link.partition("#")
            if "://" in link:
                continue
            found = path.parent / target if target else path
            assert found.is_file(), f"{path.name}: {link}"
            headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert not anchor or anchor in headings, f"{path.name}: {link}"


def test_decisions_are_numbered_one_after_the_other_and_short() -> None:
    found = sorted((DOCS / "decisions").glob("*.md"))
    assert [path.name[:4] for path in found] == [f"{number:04d}" for number in range(1, len(found) + 1)]
    for path in found:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(path.name[:4])}. ")
        assert len(text.splitlines()) <= 20
