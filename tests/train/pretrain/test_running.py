"""Whole runs on made shards: a kill at any moment costs nothing, and settings change only where changes say so."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.train.pretrain.made import make_text_tokens, texts_of, tokenizer
from train.feed.auditing import audit_run
from train.feed.batch import Batch
from train.feed.plan import PlanError
from train.feed.token_shards import TokenShards
from train.pretrain import Change, Pretrain, SpikeGuard, Stepped, Trained, Trainer, TrainingError, run, trainer
from train.pretrain.checkpoints import checkpoint_folder, checkpoint_steps
from train.pretrain.guard import Diverged
from train.pretrain.metrics import TIMED, read_metrics
from train.pretrain.running import plan_of
from train.pretrain.settings import PLAN_CHANGES

ROOT = Path(__file__).parents[3]
SETTINGS = Pretrain(
    layers=2,
    width=32,
    heads=2,
    weights={"code": 1, "maths": 1, "prose": 2},
    held_out=0.1,
    sequence_tokens=32,
    batch_sequences=8,
    micro_batch_sequences=4,
    steps=24,
    learning_rate=0.01,
    warmup_steps=4,
    checkpoint_every_steps=6,
    evaluate_every_steps=8,
    evaluation_sequences=4,
    seed=3,
    threads=1,
)


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tokens")
    return make_text_tokens(folder, {domain: texts_of(domain, 120) for domain in ("prose", "code", "maths")})


def _weights(trained: Trained) -> dict[str, torch.Tensor]:
    return load_file(Path(trained.model) / "model.safetensors")


def _same_weights(one: Trained, other: Trained) -> bool:
    told, found = _weights(one), _weights(other)
    return told.keys() == found.keys() and all(torch.equal(told[name], found[name]) for name in told)


def _rows(out: Path) -> list[dict[str, Any]]:
    return [{key: row[key] for key in row if key not in TIMED} for row in read_metrics(str(out))]


@pytest.fixture(scope="session")
def whole(tokens: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    out = tmp_path_factory.mktemp("whole")
    return run(SETTINGS, tokens=tokens, out=str(out)), out


def test_a_run_leaves_a_model_metrics_a_plot_and_its_account(whole: tuple[Trained, Path]) -> None:
    trained, out = whole
    assert {path.name for path in out.iterdir()} >= {
        "checkpoints", "ledger", "loss.svg", "metrics.jsonl", "model", "plan.json", "trained.json"
    }  # fmt: skip
    assert checkpoint_steps(str(out)) == [12, 18, 24]
    told = json.loads((out / "trained.json").read_text())
    assert (told["steps"], told["tokens"], told["model"]) == (24, trained.tokens, "model")
    rows = _rows(out)
    assert [row["step"] for row in rows if row["kind"] == "step"] == list(range(24))
    assert [row["step"] for row in rows if row["kind"] == "evaluation"] == [8, 16, 24]
    assert sum(row["targets"] for row in rows if row["kind"] == "step") == trained.tokens
    assert set(trained.by_domain) == {"code", "maths", "prose"}
    assert trained.by_domain["prose"]["bits_per_byte"] < rows[0]["loss"]
    assert b"<svg" in (out / "loss.svg").read_bytes()


def test_the_model_loads_in_transformers_with_its_tokenizer(whole: tuple[Trained, Path]) -> None:
    import transformers

    trained, _ = whole
    model = transformers.AutoModelForCausalLM.from_pretrained(trained.model)
    made = transformers.AutoTokenizer.from_pretrained(trained.model)
    ids = made("the river runs past", return_tensors="pt", add_special_tokens=False).input_ids
    assert ids[0].tolist() == tokenizer().encode(["the river runs past"])[0].tolist()
    assert model(ids).logits.shape == (1, ids.shape[1], tokenizer().vocab_size)
    assert sum(one.numel() for one in model.parameters()) == trained.parameters


def test_the_same_settings_give_the_same_bytes(whole: tuple[Trained, Path], tokens: str, tmp_path: Path) -> None:
    trained, out = whole
    again = run(SETTINGS, tokens=tokens, out=str(tmp_path))
    assert _same_weights(trained, again)
    assert replace(again, model="") == replace(trained, model="")
    assert _rows(out) == _rows(tmp_path)
    assert (out / "loss.svg").read_bytes() == (tmp_path / "loss.svg").read_bytes()


def test_a_run_that_is_done_is_not_done_again(whole: tuple[Trained, Path], tokens: str) -> None:
    trained, out = whole
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and path.name != ".training"}
    assert run(SETTINGS, tokens=tokens, out=str(out)) == trained
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_result_that_a_kill_kept_back_is_written_from_the_last_checkpoint(
    whole: tuple[Trained, Path], tokens: str, tmp_path: Path
) -> None:
    trained, _ = whole
    run(SETTINGS, tokens=tokens, out=str(tmp_path))
    (tmp_path / "trained.json").unlink()
    (tmp_path / "model" / "config.json").unlink()
    again = run(SETTINGS, tokens=tokens, out=str(tmp_path))
    assert _same_weights(trained, again)
    assert (tmp_path / "trained.json").exists()


def _settings_file(folder: Path, settings: Pretrain, tokens: str, out: Path) -> Path:
    path = folder / "settings.json"
    path.write_text(json.dumps({"settings": settings.plain(), "tokens": [tokens], "out": str(out)}))
    return path


def _started(path: Path, processes: int = 1) -> subprocess.Popen[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "--module"]
    command = [sys.executable, *(launcher if processes > 1 else ["-m"]), "train.pretrain", str(path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def test_a_run_killed_twice_at_any_moment_ends_bit_equal(
    whole: tuple[Trained, Path], tokens: str, tmp_path: Path
) -> None:
    trained, out = whole
    path = _settings_file(tmp_path, SETTINGS, tokens, tmp_path / "killed")
    for wanted in (8, 15):  # rows of metrics after which the kill comes, wherever the run then is
        child = _started(path)
        metrics = tmp_path / "killed" / "metrics.jsonl"
        while child.poll() is None and (not metrics.exists() or metrics.read_bytes().count(b"\n") < wanted):
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.communicate()
    again = run(SETTINGS, tokens=tokens, out=str(tmp_path / "killed"))
    assert _same_weights(trained, again)
    assert _rows(out) == _rows(tmp_path / "killed")
    told = audit_run(str(tmp_path / "killed"), verify="all")
    assert (told.problems, told.applied_steps) == ((), 24)


def test_a_spike_is_skipped_in_the_account_too(tokens: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_step, plain_losses, at = Trainer.step, trainer.token_losses, [0]

    def step(self: Trainer, batch: Batch, **rate: float) -> Stepped:
        at[0] = batch.step
        return plain_step(self, batch, **rate)

    def losses(*told: Any) -> Any:
        total, count = plain_losses(*told)
        return total * (100.0 if at[0] in (14, 15, 16) else 1.0), count

    monkeypatch.setattr(Trainer, "step", step)
    monkeypatch.setattr(trainer, "token_losses", losses)
    guard = SpikeGuard(window_steps=16, patience_steps=2)
    trained = run(replace(SETTINGS, guard=guard), tokens=tokens, out=str(tmp_path))
    assert [(one["step"], one["first"], one["last"]) for one in trained.rollbacks] == [(12, 14, 15)]
    told = audit_run(str(tmp_path), verify="all")
    assert (told.problems, told.applied_steps, sorted(told.skipped)) == ((), 22, [14, 15])


def test_workers_change_nothing(whole: tuple[Trained, Path], tokens: str, tmp_path: Path) -> None:
    again = run(replace(SETTINGS, workers=2), tokens=tokens, out=str(tmp_path))
    assert _same_weights(whole[0], again)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"width": 64}, "width"),
        ({"weights": {"code": 1, "maths": 1, "prose": 3}}, "weights"),
        ({"batch_sequences": 4}, "batch_sequences"),
        ({"steps": 30}, "steps"),
        ({"learning_rate": 0.02}, "learning_rate"),
        ({"seed": 4}, "seed"),
    ],
)
def test_another_setting_does_not_go_on_from_a_checkpoint(
    whole: tuple[Trained, Path], tokens: str, changed: dict[str, Any], name: str
) -> None:
    with pytest.raises(TrainingError, match=rf"^{name}: .* was trained with .* up to step 24; put it back, make it a "):
        run(replace(SETTINGS, **changed), tokens=tokens, out=str(whole[1]))


def test_settings_that_change_no_answer_may_differ(whole: tuple[Trained, Path], tokens: str) -> None:
    other = replace(SETTINGS, keep_checkpoints=2, workers=1, evaluate_every_steps=None, threads=None, guard=None)
    assert run(other, tokens=tokens, out=str(whole[1])).steps == 24


def test_other_tokens_are_refused(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    other = make_text_tokens(tmp_path, {domain: texts_of(domain, 90) for domain in ("prose", "code", "maths")})
    with pytest.raises(TrainingError, match="its checkpoint of step 24 was trained on other tokens; give the folders"):
        run(SETTINGS, tokens=other, out=str(whole[1]))


def test_changes_that_lie_ahead_are_taken_on_and_those_behind_are_settled(tokens: str, tmp_path: Path) -> None:
    later = Change(at_step=24, steps=30, weights={"code": 3, "maths": 0, "prose": 0}, batch_sequences=4)
    out = str(tmp_path / "parts")
    run(SETTINGS, tokens=tokens, out=out)
    parts = run(replace(SETTINGS, changes=(later,)), tokens=tokens, out=out)
    whole = run(replace(SETTINGS, changes=(later,)), tokens=tokens, out=str(tmp_path / "whole"))
    assert parts.steps == whole.steps == 30
    assert _same_weights(parts, whole)
    rows = [row for row in read_metrics(out) if row["kind"] == "step"]
    assert set(rows[24]["targets_by_domain"]) == {"code"}
    with pytest.raises(
        TrainingError, match=r"changes: those before step 30, up to which .* is trained, were .*'code': 3"
    ):
        run(replace(SETTINGS, changes=(replace(later, batch_sequences=2),)), tokens=tokens, out=out)


def test_a_changed_learning_rate_and_sequence_length_hold_from_their_step(tokens: str, tmp_path: Path) -> None:
    changes = (Change(at_step=8, sequence_tokens=16, batch_sequences=16), Change(at_step=12, learning_rate=0.002))
    run(replace(SETTINGS, steps=16, schedule="wsd", decay_share=0.0, changes=changes), tokens=tokens, out=str(tmp_path))
    rows = [row for row in read_metrics(str(tmp_path)) if row["kind"] == "step"]
    assert [row["learning_rate"] for row in rows[10:14]] == [0.01, 0.01, 0.002, 0.002]
    assert all(row["targets"] <= 256 for row in rows)


def test_the_length_of_a_run_in_tokens_counts_changed_batches() -> None:
    changes = (Change(at_step=10, batch_sequences=16),)
    told = replace(SETTINGS, steps=None, tokens=10 * 256 + 5 * 512, changes=changes)
    assert (told.total_steps, replace(told, tokens=10 * 256 + 5 * 512 + 1).total_steps) == (15, 16)
    assert [replace(told, tokens=n).total_steps for n in (2561, 3072, 3073)] == [11, 11, 12]
    assert [replace(told, tokens=n, changes=()).total_steps for n in (1, 256, 257, 2560)] == [1, 1, 2, 10]


@pytest.mark.parametrize(
    ("changed", "block"),
    [
        ({"steps": 24}, 128),  # at least 4 sequences
        ({"steps": 2000}, 512),  # 2,000 batches of 256 tokens in 1,000 blocks
        ({"steps": 10**9}, 1 << 16),
        ({"steps": 24, "block_tokens": 77}, 77),
    ],
)
def test_a_run_has_about_a_thousand_blocks(changed: dict[str, int], block: int) -> None:
    assert replace(SETTINGS, **changed).tokens_a_block == block


def test_the_smallest_share_measures_a_document_of_each_domain(tokens: str, tmp_path: Path) -> None:
    told = io.StringIO()
    trained = run(replace(SETTINGS, steps=1, held_out=1e-9), tokens=tokens, out=str(tmp_path), progress=told)
    assert "held out" not in told.getvalue()
    assert set(trained.by_domain) == {"code", "maths", "prose"}


def test_a_domain_of_which_nothing_can_be_measured_is_told_and_one_of_which_most_is(tmp_path: Path) -> None:
    long = texts_of("prose", 2)
    texts = {"code": texts_of("code", 1), "maths": ["1 2 3", long[0]], "prose": [*long, ""]}
    tokens = make_text_tokens(tmp_path / "tokens", texts, shards_a_domain=1)
    told = io.StringIO()
    settings = replace(SETTINGS, steps=1, weights=None, held_out=0.01)
    trained = run(settings, tokens=tokens, out=str(tmp_path / "out"), progress=told)
    assert "nothing of code is measured: it has one document only" in told.getvalue()
    assert "% of maths are held out: its last document is that long" in told.getvalue()
    assert "nothing of prose is measured: it has nothing to predict in what is held out" in told.getvalue()
    assert set(trained.by_domain) == {"maths"}


def test_steps_beyond_the_epochs_are_refused(tokens: str, tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=r"steps: 5000 are more than the \d+ that max_epochs leaves; raise max_epochs"
    ):
        run(replace(SETTINGS, steps=5000, max_epochs=1), tokens=tokens, out=str(tmp_path))


def test_the_plan_is_stored_and_is_the_settings(whole: tuple[Trained, Path], tokens: str) -> None:
    told = json.loads((whole[1] / "plan.json").read_text())
    shards = TokenShards.open(tokens)
    assert told["plan"] == plan_of(SETTINGS, shards).state()
    assert told["tokens"] == [tokens]


def test_settings_are_free_until_a_step_is_trained(tokens: str, tmp_path: Path) -> None:
    with pytest.raises(Diverged, match="lower learning_rate"):
        run(replace(SETTINGS, learning_rate=1e30), tokens=tokens, out=str(tmp_path))
    assert checkpoint_steps(str(tmp_path)) == [0]
    assert run(SETTINGS, tokens=tokens, out=str(tmp_path)).steps == 24
    assert audit_run(str(tmp_path)).problems == ()


def test_a_last_update_that_ruins_the_model_leaves_no_result(tokens: str, tmp_path: Path) -> None:
    settings = replace(SETTINGS, steps=1, learning_rate=1e300, guard=None)
    with pytest.raises(Diverged, match="step 0: weights that are no numbers"):
        run(settings, tokens=tokens, out=str(tmp_path))
    assert not (tmp_path / "trained.json").exists()
    assert checkpoint_steps(str(tmp_path)) == []


def test_steps_in_which_nothing_is_predicted_are_passed_over(tmp_path: Path) -> None:
    texts = {"code": [""] * 60, "prose": texts_of("prose", 20)}
    tokens = make_text_tokens(tmp_path / "tokens", texts)
    settings = replace(SETTINGS, weights={"code": 9, "prose": 1}, batch_sequences=1, evaluation_sequences=None)
    trained = run(settings, tokens=tokens, out=str(tmp_path / "out"))
    found = audit_run(str(tmp_path / "out"), verify="all")
    assert found.problems == ()
    assert 0 < found.applied_steps < 24
    assert set(found.skipped.values()) == {"no targets"}
    assert trained.steps == 24


def test_tokens_that_predict_nothing_or_are_none_are_told(tmp_path: Path) -> None:
    settings = replace(SETTINGS, weights=None, steps=2)
    empty = make_text_tokens(tmp_path / "empty", {"code": [""] * 60})
    for _ in range(2):
        with pytest.raises(TrainingError, match="steps 0 to 2: no target of any batch counts"):
            run(settings, tokens=empty, out=str(tmp_path / "out"))
    none = make_text_tokens(tmp_path / "none", {"code": []})
    with pytest.raises(PlanError, match="shards: they hold no token"):
        run(settings, tokens=none, out=str(tmp_path / "other"))


def test_the_share_of_the_peak_that_is_used_is_told(tokens: str, tmp_path: Path) -> None:
    run(replace(SETTINGS, steps=2, peak_flops=1e12), tokens=tokens, out=str(tmp_path))
    shares = [row["model_flops_utilisation"] for row in read_metrics(str(tmp_path)) if row["kind"] == "step"]
    assert all(0 < share < 1 for share in shares)


def test_two_runs_on_one_folder_exclude_each_other(tokens: str, tmp_path: Path) -> None:
    import fcntl

    with open(tmp_path / ".training", "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TrainingError, match=r"out: another run is training into .*; wait for it, or use another"):
            run(SETTINGS, tokens=tokens, out=str(tmp_path))


def test_the_folder_of_the_tokens_is_refused(tokens: str) -> None:
    before = {path.name for path in Path(tokens).iterdir()} | {".training"}
    with pytest.raises(TrainingError, match="is where the tokens come from; train into a folder of its own"):
        run(SETTINGS, tokens=tokens, out=f"{tokens}/")
    assert {path.name for path in Path(tokens).iterdir()} == before


def test_a_remote_folder_is_refused(tokens: str) -> None:
    with pytest.raises(TrainingError, match="out: memory://x is no local folder"):
        run(SETTINGS, tokens=tokens, out="memory://x")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"steps": None}, "steps, tokens: give exactly one of them"),
        ({"tokens": 5}, "steps, tokens: give exactly one of them"),
        ({"heads": 3}, "heads: 3 do not divide width 32"),
        ({"weights": {"code": 0}}, "weights: all are 0"),
        ({"changes": (Change(at_step=5), Change(at_step=5))}, r"changes: at_step \[5, 5\] must rise"),
        ({"changes": (Change(at_step=5),)}, "changes: at_step 5 changes nothing; name a setting"),
        ({"changes": (Change(at_step=24, batch_sequences=2),)}, "changes: at_step 24 is never reached: the run has 24"),
        ({"changes": (Change(at_step=25, steps=30),)}, "changes: at_step 25 is never reached: the run has 24 steps"),
        ({"changes": (Change(at_step=9, steps=8),)}, "changes: at_step 9 has steps: 8, which are over by then; give 9"),
        (
            {"steps": None, "tokens": 2560, "changes": (Change(at_step=10, batch_sequences=2),)},
            "changes: at_step 10 is never reached: the run has 10 steps",
        ),
        ({"keep_checkpoints": 1}, "keep_checkpoints: 1 leaves the guard none from before a spike"),
    ],
)
def test_settings_that_cannot_be_are_refused_when_made(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        replace(SETTINGS, **settings)


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ((Change(at_step=24, steps=30),), 30),  # goes on where it would have ended
        ((Change(at_step=9, steps=9),), 9),  # ends at once
        ((Change(at_step=23, batch_sequences=2),), 24),
        ((Change(at_step=24, steps=30), Change(at_step=29, learning_rate=0.1)), 30),
    ],
)
def test_changes_that_are_reached_are_taken(changes: tuple[Change, ...], steps: int) -> None:
    assert replace(SETTINGS, changes=changes).total_steps == steps


def test_what_a_plan_can_change_a_change_can_name() -> None:
    assert Change(at_step=1, overflow="crop", packing="best_fit").of_plan == {"overflow": "crop", "packing": "best_fit"}
    assert set(PLAN_CHANGES) < set(vars(Change(at_step=1)))


@pytest.mark.parametrize(
    ("told", "code", "text"),
    [
        ("{", 2, "Expecting property name"),
        ('{"settings": {}, "out": "x"}', 2, "tokens: it would hold settings, tokens and out, and nothing else"),
        ('{"settings": {"steps": 1, "widht": 3}, "tokens": "x", "out": "y"}', 2, "widht: Unexpected keyword argument"),
        ('{"settings": {"steps": 1}, "tokens": "/nowhere", "out": "OUT"}', 2, "/nowhere: no token shards; it would be"),
    ],
)
def test_the_program_tells_a_mistake_in_its_last_line(tmp_path: Path, told: str, code: int, text: str) -> None:
    from train.pretrain.__main__ import main

    path = tmp_path / "settings.json"
    path.write_text(told.replace("OUT", str(tmp_path / "out")))
    child = (
        subprocess.run(
            [sys.executable, "-m", "train.pretrain", str(path)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if code == 1
        else None
    )
    if child is None:
        assert main([str(path)]) == code
    else:
        assert child.returncode == code
        assert text in child.stderr.splitlines()[-1]


@pytest.mark.heavy
@pytest.mark.parametrize(("sharding", "optimizer"), [("none", "adamw"), ("full", "adamw"), ("full", "muon")])
def test_two_processes_train_as_one_does_and_either_goes_on_from_the_other(
    tokens: str, tmp_path: Path, sharding: str, optimizer: str
) -> None:
    settings = replace(SETTINGS, sharding=sharding, optimizer=optimizer)
    folders = {processes: tmp_path / str(processes) for processes in (1, 2)}
    trained = run(settings, tokens=tokens, out=str(folders[1]))
    _trained_by_two(tmp_path, settings, tokens, folders[2])
    one, two = _rows(folders[1]), _rows(folders[2])
    assert [row["kind"] for row in one] == [row["kind"] for row in two]
    key = {"step": "loss", "evaluation": "bits_per_byte"}
    for row, other in zip(one, two, strict=True):
        # float32 sums in another order, over 24 updates
        assert other[key[row["kind"]]] == pytest.approx(row[key[row["kind"]]], rel=1e-4)
    for folder in folders.values():  # as if killed after step 12
        for step in (18, 24):
            (Path(checkpoint_folder(str(folder), step)) / "manifest.json").unlink()
    run(settings, tokens=tokens, out=str(folders[2]))
    _trained_by_two(tmp_path, settings, tokens, folders[1])
    for folder in folders.values():
        again = load_file(folder / "model" / "model.safetensors")
        for name, weight in _weights(trained).items():
            assert torch.allclose(again[name], weight, rtol=1e-3, atol=1e-4), name
        told = audit_run(str(folder), verify="all")
        assert (told.problems, told.applied_steps) == ((), 24)


def _trained_by_two(folder: Path, settings: Pretrain, tokens: str, out: Path) -> None:
    child = _started(_settings_file(folder, settings, tokens, out), processes=2)
    _, said = child.communicate()
    assert child.returncode == 0, said
