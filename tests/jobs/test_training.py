"""A recipe that trains, and the verbs around it: what is done stays, nothing trained is lost, mistakes are told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jobs.command_line import invoke
from shards.store import read_json
from tests.jobs.corpus import corpus, mill

ROOT = Path(__file__).parents[2]
PRINTS = "from jobs import command_line; command_line.invoke = lambda words: print(chr(0x65E5)); command_line.main()"
TINY = {
    "layers": 1,
    "width": 32,
    "heads": 2,
    "sequence_tokens": 64,
    "batch_sequences": 4,
    "steps": 4,
    "warmup_steps": 1,
    "held_out": 0.1,
    "evaluation_sequences": 2,
    "threads": 1,
}


def trained(data: Path, out: Path, **changes: Any) -> Any:
    tokens = {"vocab_size": changes.pop("vocab_size", 300)}
    return mill(data, out, steps=[{"step": "exact"}], tokens=tokens, train={**TINY, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    result = trained(corpus(folder / "data", files=2, count=120), folder / "out")
    assert result.exit_code == 0
    return folder / "out"


def account(out: Path) -> dict[str, Any]:
    found = read_json(str(out / "04-train" / "manifest.json"))
    assert found is not None
    return found


def test_a_recipe_that_trains_leaves_a_model_and_an_account(made: Path) -> None:
    told = account(made)
    assert told["trained"]["steps"] == TINY["steps"]
    assert told["trained"]["tokens"] > 0
    assert told["rows"]["in"] == told["rows"]["kept"]
    assert (made / "04-train" / "model" / "model.safetensors").is_file()
    assert (made / "04-train" / "model" / "tokenizer.json").is_file()


def test_the_report_shows_its_curves(made: Path) -> None:
    assert invoke(["report", str(made)]) == 0
    told = json.loads((made / "report.json").read_text())["training"]
    assert len(told["losses"]) == TINY["steps"]
    assert sum(row["tokens"] for row in told["mixture"]) == told["tokens"]
    page = (made / "report.html").read_text()
    assert 'class="curve stroke-0"' in page
    assert "held-out bits per byte" in page


def test_a_second_run_trains_nothing(made: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (made / "04-train").rglob("*")}
    assert trained(made.parent / "data", made).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (made / "04-train").rglob("*")} == before


def test_other_settings_on_the_same_tokens_are_refused_and_nothing_is_lost(
    made: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from jobs.errors import UserError

    with pytest.raises(UserError, match="learning_rate"):
        trained(made.parent / "data", made, learning_rate=0.5)
    assert (made / "04-train" / "model" / "model.safetensors").is_file()
    assert invoke(["report", str(made)]) == 0  # what was trained before is still told
    assert trained(made.parent / "data", made).exit_code == 0
    assert account(made)["trained"]["steps"] == TINY["steps"]


def test_other_tokens_put_aside_what_was_trained_on_the_old_ones(tmp_path: Path) -> None:
    data = corpus(tmp_path / "data", files=2, count=120)
    assert trained(data, tmp_path / "out").exit_code == 0
    first = (tmp_path / "out/04-train/model/model.safetensors").read_bytes()
    assert trained(data, tmp_path / "out", vocab_size=320).exit_code == 0
    assert (tmp_path / "out/replaced/04-train-1/model/model.safetensors").read_bytes() == first
    assert (tmp_path / "out/04-train/model/model.safetensors").read_bytes() != first


@pytest.mark.parametrize(
    ("train", "tokens", "said"),
    [
        ({"weights": {"code": 1, "proes": 2}}, {}, "train.weights: no source has the domain 'proes'; did you mean"),
        ({"weights": {"code": 1}}, {}, "train.weights: none for prose; give each domain one, 0 to leave it out"),
        ({"max_epochs": {"web": 2}}, {}, "train.max_epochs: no source has the domain 'web'; domains: code, prose"),
        (
            {"changes": [{"at_step": 1, "weights": {"code": 1}}]},
            {},
            "train.changes.1.weights: none for prose; give each domain one",
        ),
        ({"weights": {"code": 1, "prose": 1}}, {"by_domain": False}, "train.weights: none for all; give each"),
        ({"weights": {"code": 1, "prose": 0}, "max_epochs": {"code": 2}}, {}, None),
        ({"weights": {"all": 1}}, {"by_domain": False}, None),
    ],
)
def test_domains_of_a_mixture_are_held_against_the_sources(
    train: dict[str, Any],
    tokens: dict[str, Any],
    said: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = {
        "name": "t",
        "output": str(tmp_path / "out"),
        "sources": [
            {"name": name, "format": "jsonl", "paths": [str(tmp_path / "x.jsonl")]} for name in ("code", "prose")
        ],
        "steps": [{"step": "exact"}],
        "tokens": tokens,
        "train": {"steps": 4, **train},
    }
    (tmp_path / "x.jsonl").write_text('{"id": "a", "text": "b"}\n')
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe))
    assert invoke(["plan", str(tmp_path / "recipe.yaml")]) == (0 if said is None else 2)
    assert (said or "") in capsys.readouterr().err


def test_training_that_went_on_and_did_not_end_is_to_do(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "out")
    result = tmp_path / "out" / "04-train" / "trained.json"
    before = result.read_bytes()
    for now in (None, before.replace(b'"steps": 4', b'"steps": 5')):  # as begun anew, and as ended by another recipe
        result.unlink()
        if now is not None:
            result.write_bytes(now)
        assert trained(made.parent / "data", tmp_path / "out").exit_code == 0
        assert result.read_bytes() == before


def test_a_run_that_was_moved_is_audited_where_it_is_and_tokens_that_alone_were_moved_are_named(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "elsewhere" / "out"
    shutil.copytree(made, other)
    record = other / "04-train" / "plan.json"
    record.write_text(record.read_text().replace(str(made), str(tmp_path / "gone")))
    assert invoke(["train", "audit", str(other)]) == 0  # the run's own folder names its training, too
    (other / "03-tokens").rename(tmp_path / "tokens")
    assert invoke(["train", "audit", str(other / "04-train")]) == 2
    assert "any more; name where they are now (--shards DIR)" in capsys.readouterr().err
    assert invoke(["train", "audit", str(other / "04-train"), "--shards", str(tmp_path / "tokens")]) == 0


@pytest.mark.parametrize("record", [None, "{}", "3", '{"plan": [], "tokens": ["x"]}', '{"plan": {}, "tokens": "x"}'])
def test_the_audit_of_a_folder_that_is_no_training_tells_so(
    record: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if record is not None:
        (tmp_path / "plan.json").write_text(record)
    assert invoke(["train", "audit", str(tmp_path)]) == 2
    assert "no plan.json of a run; name the folder that training wrote to" in capsys.readouterr().err


def test_the_audit_of_a_run_finds_nothing_wrong(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["train", "audit", str(made / "04-train")]) == 0
    assert "nothing is lost, nothing is repeated" in capsys.readouterr().out
    assert invoke(["train", "audit", str(made / "04-train"), "--document", "nobody"]) == 2
    assert "document: nobody is in none of" in capsys.readouterr().err
    assert invoke(["train", "audit", str(made / "04-train"), "--steps", "0:2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["applied_steps"] == 2


def test_the_audit_finds_a_step_that_is_missing(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(made / "04-train", tmp_path / "run")
    file = next((tmp_path / "run" / "ledger").glob("*.jsonl"))
    lines = [line for line in file.read_text().splitlines(keepends=True) if json.loads(line).get("step") != 1]
    file.write_text("".join(lines))
    assert invoke(["train", "audit", str(tmp_path / "run")]) == 1
    assert "loss: " in capsys.readouterr().out


@pytest.mark.parametrize("steps", ["3", "5:2", "a:b", "2:2"])
def test_steps_of_an_audit_that_are_no_range_are_told(
    steps: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["train", "audit", str(made / "04-train"), "--steps", steps]) == 2
    assert "is no range; write A:B" in capsys.readouterr().err


def test_the_model_is_written_in_another_type_when_that_is_asked_for(made: Path, tmp_path: Path) -> None:
    from safetensors import safe_open

    shutil.copytree(made, tmp_path / "out")
    assert trained(made.parent / "data", tmp_path / "out", model_dtype="bfloat16").exit_code == 0
    with safe_open(tmp_path / "out/04-train/model/model.safetensors", "pt") as tensors:
        assert {tensors.get_slice(name).get_dtype() for name in tensors.keys()} == {"BF16"}  # noqa: SIM118


def test_an_answer_is_told_on_a_terminal_that_has_not_its_letters(made: Path, tmp_path: Path) -> None:
    other = tmp_path / "\u65e5\u672c"
    shutil.copytree(made / "04-train", other)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "jobs.command_line", "train", "audit", str(other), "--document", "\u65e5"]
    child = subprocess.run(command, env=environment, capture_output=True, cwd=ROOT, check=False)
    assert (child.returncode, b"\\u65e5 is in none" in child.stderr) == (2, True)
    command = [sys.executable, "-c", PRINTS, "x"]
    child = subprocess.run(command, env=environment, capture_output=True, cwd=ROOT, check=False)
    assert (child.returncode, child.stdout.strip()) == (0, b"\\u65e5")


def test_pretraining_alone_reads_the_shards_of_a_run(made: Path, tmp_path: Path) -> None:
    settings = {**TINY, "steps": 2, "output": str(tmp_path / "alone"), "shards": [str(made)]}
    (tmp_path / "pretrain.yaml").write_text(json.dumps(settings))
    assert invoke(["train", "pretrain", str(tmp_path / "pretrain.yaml"), "--set", "steps=3"]) == 0
    told = read_json(str(tmp_path / "alone" / "trained.json"))
    assert told is not None
    assert told["steps"] == 3


def test_mistakes_of_a_settings_file_are_told_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pretrain.yaml").write_text("output: 3\nlayer: 2\nsteps: 2\nwidth: no\n")
    assert invoke(["train", "pretrain", str(tmp_path / "pretrain.yaml")]) == 2
    told = capsys.readouterr().err
    for said in ("pretrain.yaml:1: output: expected text", "shards: is missing", "layer", "width"):
        assert said in told


def test_an_export_holds_all_documents(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["export", str(made), "--to", "megatron", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tokens = read_json(str(made / "03-tokens" / "manifest.json"))
    assert tokens is not None
    assert (told["documents"], told["tokens"]) == (tokens["documents"], tokens["tokens"])
    assert (made / "exports" / "megatron").is_dir()


def test_formats_are_listed_and_unknown_ones_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["export", "anywhere"]) == 0
    assert "megatron" in capsys.readouterr().out
    assert invoke(["export", "anywhere", "--to", "megatro"]) == 2
    assert "did you mean 'megatron'?" in capsys.readouterr().err


def test_a_budget_knows_the_tokens_of_a_run(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["budget", str(made), "--parameters", "10k", "--tokens", "80k", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tokens = read_json(str(made / "03-tokens" / "manifest.json"))
    assert tokens is not None
    assert {row["domain"]: row["unique_tokens"] for row in told["domains"]} == {
        name: counts["tokens"] for name, counts in tokens["domains"].items()
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--flops", "many"], "is not a number"),
        (["--flops", "1e20", "--loss", "2"], "each follows from the other"),
        (["--unique", "web=1B", "--weight", "web"], "is not NAME=NUMBER"),
        ([], "nothing to plan from"),
    ],
)
def test_a_budget_that_cannot_be_answered_is_told(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["budget", *arguments]) == 2
    assert said in capsys.readouterr().err
