"""Foreign steps: datatrove's blocks give datatrove's answers, and a user's own step is checked before it runs."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from jobs.adapters import DatatroveStep, PythonStep
from jobs.errors import MistakesError
from jobs.recipe import build
from shards.schema import DOCUMENT
from shards.step import Step

GOPHER = "datatrove.pipeline.filters.GopherQualityFilter"
PROSE = "The cat sat with that dog and they have to be kind. " * 5

OWN = """
import pyarrow as pa
from datatrove.pipeline.filters.base_filter import BaseFilter
from shards.step import Check, judge, with_column


class Shouting:
    name, version, reads = "shouting", 3, frozenset({"text"})
    adds = pa.schema([("capitals", pa.int64())])

    def __init__(self, most: int = 3) -> None:
        self.most = most

    def __call__(self, batch):
        counts = pa.array([sum(map(str.isupper, text)) for text in batch.column("text").to_pylist()], pa.int64())
        values = counts.to_numpy()
        check = Check(rule="most", failed=values > self.most, value=values.astype(float), threshold=self.most)
        return judge(with_column(batch, "capitals", counts), [check])


class NoStep:
    name = "no"


ready = Shouting(0)


class Picky(BaseFilter):
    name = "picky"

    def filter(self, doc):
        if doc.text == "raise":
            raise KeyError(doc.text)
        if doc.text == "surrogate":
            doc.text = "\\ud800"
        if doc.text == "rewrite":
            doc.text = "rewritten"
        doc.metadata["length"] = len(doc.text)
        return (False, "Bad Words: too many!") if doc.text == "drop" else doc.text != "refuse"
"""


def batch_of(*texts: str) -> pa.RecordBatch:
    rows = [{"id": f"{number:02d}", "text": text, "source": "s"} for number, text in enumerate(texts)]
    return pa.RecordBatch.from_pylist(rows, schema=DOCUMENT)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of the user's, in the current directory."""
    name = f"own_steps_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


def said(make: Any, **fields: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        make(**fields)
    return str(caught.value.errors()[0]["ctx"]["error"])


def test_a_datatrove_filter_drops_with_its_own_reason() -> None:
    step = DatatroveStep(block=GOPHER)
    judged = step(batch_of("too short", PROSE, "", "word " * 60))
    assert judged.kept.column("id").to_pylist() == ["01"]
    assert judged.kept_rows.tolist() == [1]
    assert [(drop["row"], drop["rule"], drop["rules"]) for drop in judged.drops.to_pylist()] == [
        (0, "gopher_short_doc", ["gopher_short_doc"]),
        (2, "gopher_short_doc", ["gopher_short_doc"]),
        (3, "gopher_enough_stop_words", ["gopher_enough_stop_words"]),
    ]
    assert judged.failures.num_rows == 0
    assert isinstance(step, Step)


def test_it_keeps_and_drops_what_datatrove_itself_does(shared: Path) -> None:
    from datatrove.data import Document
    from datatrove.pipeline.filters import C4QualityFilter

    pages = sorted((shared / "sites").rglob("*.html"))[:40]
    texts = [page.read_text(errors="replace") for page in pages] + [PROSE, "a { b }"]
    theirs = {
        document.id: document.text
        for document in C4QualityFilter(filter_no_terminal_punct=False).run(
            iter([Document(text=text, id=f"{number:02d}") for number, text in enumerate(texts)])
        )
    }
    step = DatatroveStep(block="datatrove.pipeline.filters.C4QualityFilter", args={"filter_no_terminal_punct": False})
    kept = step(batch_of(*texts)).kept
    assert dict(zip(kept.column("id").to_pylist(), kept.column("text").to_pylist(), strict=True)) == theirs
    assert 0 < len(theirs) < len(texts)


def test_a_formatter_rewrites() -> None:
    step = DatatroveStep(block="datatrove.pipeline.formatters.PIIFormatter")
    judged = step(batch_of("write to someone@example.com", "nothing here"))
    assert judged.kept.column("text").to_pylist() == ["write to email@example.com", "nothing here"]
    assert judged.kept.schema.field("text").type == pa.large_string()


def test_a_document_that_makes_a_block_raise_fails_alone_and_its_text_is_not_told(own: str) -> None:
    step = DatatroveStep(block=f"{own}.Picky", columns={"length": "int64"})
    judged = step(batch_of("stay", "raise", "rewrite", "drop", "surrogate", "refuse"))
    assert judged.kept.select(["id", "text", "length"]).to_pylist() == [
        {"id": "00", "text": "stay", "length": 4},
        {"id": "02", "text": "rewritten", "length": 9},
    ]
    assert [(drop["row"], drop["rule"]) for drop in judged.drops.to_pylist()] == [
        (3, "bad_words_too_many"),
        (5, "picky"),
    ]
    assert [(row["row"], row["error"]) for row in judged.failures.to_pylist()] == [
        (1, "KeyError"),
        (4, "UnicodeEncodeError"),
    ]
    assert (
        judged.failures.column("message")[0].as_py()
        == f"raised at {own}.py:{OWN.split('raise KeyError', maxsplit=1)[0].count(chr(10)) + 1}"
    )
    assert step.adds == pa.schema([("length", pa.int64())])
    assert [Path(file).name for file in step.files()] == [f"{own}.py"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(), max_size=6))
def test_every_row_of_any_text_has_one_outcome(texts: list[str]) -> None:
    judged = DatatroveStep(block=GOPHER)(batch_of(*texts))
    rows = (
        judged.kept_rows.tolist() + judged.drops.column("row").to_pylist() + judged.failures.column("row").to_pylist()
    )
    assert sorted(rows) == list(range(len(texts)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"block": "Gopher"}, "block: 'Gopher' names no module; write it in full, as package.module.Name"),
        (
            {"block": "datatrove.pipeline.filters.GopherQualityFilte"},
            "block: datatrove.pipeline.filters has no 'GopherQualityFilte'; did you mean 'GopherQualityFilter'?",
        ),
        (
            {"block": "datatrov.filters.Gopher"},
            "block: there is no module datatrov; correct datatrov.filters.Gopher or install it",
        ),
        ({"block": "json.loads"}, "block: json.loads is no datatrove block; name a class under datatrove.pipeline"),
        (
            {"block": "datatrove.pipeline.readers.JsonlReader"},
            "block: datatrove.pipeline.readers.JsonlReader does not judge one document at a time; "
            "name a filter or a formatter",
        ),
        (
            {"block": GOPHER, "args": {"min_doc_word": 3}},
            f"args: {GOPHER} takes no 'min_doc_word'; did you mean 'min_doc_words'?",
        ),
        (
            {"block": "datatrove.pipeline.filters.LambdaFilter"},
            "args: datatrove.pipeline.filters.LambdaFilter: missing a required argument: 'filter_function'; "
            "add it under args:",
        ),
        ({"block": GOPHER, "columns": {"a": "str"}}, "columns: a: no type 'str'; did you mean 'string'?"),
    ],
)
def test_a_wrong_block_is_refused_before_any_work(fields: dict[str, Any], message: str) -> None:
    assert said(DatatroveStep, **fields) == message


def test_a_step_of_ones_own_is_found_in_the_current_directory(own: str) -> None:
    step = PythonStep(object=f"{own}.Shouting", args={"most": 2})
    assert isinstance(step, Step)
    assert (step.name, step.version, step.reads, step.adds.names) == ("shouting", 3, frozenset({"text"}), ["capitals"])
    judged = step(batch_of("quiet", "LOUD"))
    assert judged.kept.select(["id", "capitals"]).to_pylist() == [{"id": "00", "capitals": 0}]
    drop = judged.drops.to_pylist()[0]
    assert (drop["row"], drop["rule"], drop["value"], drop["threshold"]) == (1, "most", 4.0, 2.0)
    assert [Path(file).name for file in step.files()] == [f"{own}.py"]
    assert PythonStep(object=f"{own}.ready")(batch_of("Loud")).kept.num_rows == 0


def test_steps_pickle_small_and_work_in_another_process(own: str, tmp_path: Path) -> None:
    told = pickle.dumps(PythonStep(object=f"{own}.Shouting", args={"most": 2}))
    assert len(told) < 500
    (tmp_path / "step.pickle").write_bytes(told)
    code = "import pickle; print(pickle.load(open('step.pickle', 'rb')).made.most)"
    root = str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": root},
                          check=True, capture_output=True, text=True)  # fmt: skip
    assert done.stdout == "2\n"


def test_what_is_no_step_is_refused_before_any_work(own: str) -> None:
    assert said(PythonStep, object=f"{own}.NoStep") == (
        f"object: {own}.NoStep is no step, it lacks version, reads, adds, __call__; see shards.step.Step"
    )
    assert said(PythonStep, object=f"{own}.Shouting", args={"mst": 3}) == (
        f"args: {own}.Shouting takes no 'mst'; did you mean 'most'?"
    )
    assert said(PythonStep, object=f"{own}.ready", args={"most": 3}) == (
        f"args: {own}.ready is made already and takes none; name its class or remove args:"
    )
    assert said(PythonStep, object=f"{own}.Shoutin") == f"object: {own} has no 'Shoutin'; did you mean 'Shouting'?"


def test_a_recipe_says_where_the_mistake_is(tmp_path: Path) -> None:
    document = {
        "name": "a",
        "output": "out",
        "sources": [{"name": "s", "format": "text", "paths": ["x"]}],
        "steps": [{"step": "datatrove", "block": GOPHER, "args": {"min_doc_word": 3}}],
    }
    with pytest.raises(MistakesError) as caught:
        build(document)
    assert caught.value.mistakes == (
        f"recipe: datatrove.args: {GOPHER} takes no 'min_doc_word'; did you mean 'min_doc_words'?",
    )
