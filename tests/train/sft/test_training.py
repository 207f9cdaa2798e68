"""Fine-tuning: what is packed, accumulated, resumed or adapted trains the same; what is saved, other libraries load."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from train.model.checkpoint import load_hugging_face, save_hugging_face
from train.model.losses import token_losses
from train.model.settings import ModelSettings
from train.model.transformer import Transformer
from train.pretrain.metrics import read_metrics
from train.pretrain.trainer import Trainer
from train.sft import Chat, FineTuned, Lora, Sft, SftError, run
from train.sft.__main__ import main
from train.sft.examples import open_examples
from train.sft.packing import pack

SETTINGS = Sft(
    steps=12,
    sequence_tokens=64,
    batch_sequences=4,
    learning_rate=1e-2,
    warmup_steps=2,
    held_out=0.2,
    checkpoint_every_steps=4,
    evaluate_every_steps=6,
    precision="fp32",
    model_dtype="float32",
    guard=None,
    threads=1,
)


@pytest.fixture(scope="module")
def model(families: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model with the ChatML family's tokenizer and template."""
    folder = str(tmp_path_factory.mktemp("tiny") / "model")
    made = Transformer(
        ModelSettings(vocab_size=416, layers=2, width=32, heads=4, key_value_heads=2, max_positions=128), seed=1
    )
    save_hugging_face(made, folder, families["chatml"].folder, dtype="float32")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    drawn = random.Random(3)
    rows = []
    for number in range(80):
        word = drawn.choice(["rye", "oats", "wheat", "spelt"])
        messages = []
        for _ in range(drawn.randint(1, 2)):
            messages += [
                {"role": "user", "content": f"grind {word}?"},
                {"role": "assistant", "content": f"the mill grinds {word} fine"},
            ]
        rows.append({"id": f"r{number}", "messages": messages})
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def whole(model: str, data: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[FineTuned, str]:
    out = str(tmp_path_factory.mktemp("whole"))
    return run(SETTINGS, model=model, data=data, out=out), out


def test_fine_tuning_lowers_the_loss_of_held_out_conversations(whole: tuple[FineTuned, str]) -> None:
    trained, out = whole
    assert trained.held_out_before is not None
    assert trained.held_out_after is not None
    assert trained.held_out_after < 0.7 * trained.held_out_before
    rows = list(read_metrics(out))
    assert [row["step"] for row in rows if row["kind"] == "evaluation"] == [6, 12]
    assert trained.tokens == sum(row["targets"] for row in rows if row["kind"] == "step")


def test_the_account_of_tokens_and_slots_adds_up(whole: tuple[FineTuned, str]) -> None:
    trained, out = whole
    tokens, slots = trained.example_tokens, trained.slots
    assert tokens["encoded"] == tokens["trained"] + tokens["context"] + tokens["cropped"] + tokens["dropped"]
    assert slots["slots"] == slots["trained"] + slots["context"] + slots["padded"]
    examples = open_examples(f"{out}/examples")
    held = int(examples.lengths[examples.held_out].sum())
    assert slots["trained"] + slots["context"] + held == tokens["encoded"]
    assert trained.rows["in"] == 80


def test_a_run_that_was_killed_twice_ends_with_the_same_bits(
    model: str, data: str, whole: tuple[FineTuned, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Trainer.step
    stops = [5, 9]

    def dies(self: Trainer, batch: Any, *, learning_rate: float) -> Any:
        if stops and batch.step == stops[0]:
            stops.pop(0)
            raise KeyboardInterrupt
        return step(self, batch, learning_rate=learning_rate)

    monkeypatch.setattr(Trainer, "step", dies)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run(SETTINGS, model=model, data=data, out=str(tmp_path))
    resumed = run(SETTINGS, model=model, data=data, out=str(tmp_path))
    assert resumed.stored() == whole[0].stored()
    weights = [load_hugging_face(f"{out}/model").state_dict() for out in (str(tmp_path), whole[1])]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    before = (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns
    assert run(SETTINGS, model=model, data=data, out=str(tmp_path)).stored() == resumed.stored()
    assert (tmp_path / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_micro_batches_change_no_loss(model: str, data: str, whole: tuple[FineTuned, str], tmp_path: Path) -> None:
    run(replace(SETTINGS, micro_batch_sequences=1), model=model, data=data, out=str(tmp_path))
    told = [[row["loss"] for row in read_metrics(out) if row["kind"] == "step"] for out in (str(tmp_path), whole[1])]
    assert told[0] == pytest.approx(told[1], rel=1e-4)


def test_packed_conversations_have_the_losses_and_gradients_of_each_alone(
    model: str, whole: tuple[FineTuned, str]
) -> None:
    examples = open_examples(f"{whole[1]}/examples")
    which = np.arange(12, dtype=np.int64)
    sums, gradients = [], []
    for packed in (True, False):
        groups = [which] if packed else [which[number : number + 1] for number in range(12)]
        one, total = load_hugging_face(model), 0.0
        for group in groups:
            rows = pack(examples, group, sequence_tokens=64, padding_id=0, seed=0)
            batch = rows.batch(np.arange(rows.count, dtype=np.int64)).torch()
            logits = one(batch.inputs, batch.positions[:, :-1], batch.documents[:, :-1])
            loss, _ = token_losses(logits, batch.targets, batch.loss)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        sums.append(total)
        gradients.append([weight.grad for weight in one.parameters()])
    assert sums[0] == pytest.approx(sums[1], rel=1e-5)
    for together, apart in zip(*gradients, strict=True):
        torch.testing.assert_close(together, apart, rtol=1e-3, atol=1e-4)


def test_changing_one_conversation_of_a_row_changes_no_logit_of_another(
    model: str, whole: tuple[FineTuned, str]
) -> None:
    rows = pack(open_examples(f"{whole[1]}/examples"), np.arange(8), sequence_tokens=100, padding_id=0, seed=0)
    batch = rows.batch(np.arange(rows.count, dtype=np.int64)).torch()
    one = load_hugging_face(model)
    changed = torch.where(batch.documents == 0, (batch.tokens + 7) % 400, batch.tokens)
    with torch.no_grad():
        told = [
            one(tokens[:, :-1], batch.positions[:, :-1], batch.documents[:, :-1]) for tokens in (batch.tokens, changed)
        ]
    others = batch.documents[:, :-1] > 0
    assert others.any()
    assert torch.equal(told[0][others], told[1][others])
    assert not torch.equal(told[0][~others], told[1][~others])


def test_the_saved_model_chats_in_transformers(model: str, whole: tuple[FineTuned, str]) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = f"{whole[1]}/model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    theirs = AutoModelForCausalLM.from_pretrained(folder)
    messages = [{"role": "user", "content": "grind oats?"}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with torch.no_grad():
        logits = theirs(**prompt).logits
        torch.testing.assert_close(logits, load_hugging_face(folder)(prompt["input_ids"]), rtol=1e-3, atol=1e-3)
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") in theirs.generation_config.eos_token_id
    said = theirs.generate(**prompt, max_new_tokens=24, do_sample=False)
    assert said.shape[1] > prompt["input_ids"].shape[1]


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")  # peft 0.21 asks transformers 5 for it
def test_lora_trains_adapters_only_and_peft_loads_them(model: str, data: str, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    settings = replace(SETTINGS, lora=Lora(rank=4, alpha=8, targets=("q_proj", "v_proj", "down_proj")))
    trained = run(settings, model=model, data=data, out=str(tmp_path))
    assert trained.held_out_before is not None
    assert trained.held_out_after is not None
    assert trained.held_out_after < trained.held_out_before
    base, merged = load_hugging_face(model).state_dict(), load_hugging_face(f"{tmp_path}/model").state_dict()
    changed = {name for name in base if not torch.equal(base[name], merged[name])}
    assert changed == {name for name in base if "q_proj" in name or "v_proj" in name or "down_proj" in name}
    tokens = torch.arange(20)[None]
    with torch.no_grad():
        adapted = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), f"{tmp_path}/adapter")
        wanted = AutoModelForCausalLM.from_pretrained(f"{tmp_path}/model")(tokens).logits
        torch.testing.assert_close(adapted(tokens).logits, wanted, rtol=1e-3, atol=1e-4)
    checkpoint = tmp_path / "checkpoints" / "step-00000012" / "tensors-00000.safetensors"
    assert checkpoint.stat().st_size < (Path(model) / "model.safetensors").stat().st_size


def test_a_lora_run_that_was_stopped_goes_on_with_the_same_bits(
    model: str, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SETTINGS, steps=6, lora=Lora(rank=2, dropout=0.2, merge=False), evaluate_every_steps=None)
    first = run(settings, model=model, data=data, out=str(tmp_path / "whole"))
    step = Trainer.step

    def dies(self: Trainer, batch: Any, *, learning_rate: float) -> Any:
        if batch.step == 5:
            raise KeyboardInterrupt
        return step(self, batch, learning_rate=learning_rate)

    monkeypatch.setattr(Trainer, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        run(settings, model=model, data=data, out=str(tmp_path / "stopped"))
    monkeypatch.setattr(Trainer, "step", step)
    assert run(settings, model=model, data=data, out=str(tmp_path / "stopped")).loss == first.loss
    files = [(tmp_path / name / "adapter" / "adapter_model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert files[0] == files[1]
    assert first.model is None
    assert not (tmp_path / "whole" / "model").exists()


def test_what_cannot_be_trained_as_asked_is_one_line(model: str, data: str, whole: tuple[FineTuned, str]) -> None:
    def told(settings: Sft, out: str, **changed: Any) -> str:
        with pytest.raises(SftError) as raised:
            run(settings, **{"model": model, "data": data, "out": out, **changed})
        assert "\n" not in str(raised.value)
        return str(raised.value)

    out = whole[1]
    assert "learning_rate: 0.5 here" in told(replace(SETTINGS, learning_rate=0.5), out)
    assert "other rows" in told(replace(SETTINGS, chat=Chat(bos="template", control_text="refuse")), out)
    assert "sequence_tokens: 500 are more than the 128" in told(replace(SETTINGS, sequence_tokens=500), f"{out}/long")
    assert "s3://x" in told(SETTINGS, "s3://x/y")
    assert "no tokenizer.json" in told(SETTINGS, f"{out}/none", model="/nowhere")


def test_the_command_line_tells_what_is_wrong_in_one_line_and_trains(
    model: str, data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"settings": {"epochs": 1, "batch_sequences": 8, "sequence_tokens": 64, "threads": 1}, "model": model}
    asked |= {"data": [data], "out": str(tmp_path / "out")}
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({**asked, "settings": {"epochs": 1, "step": 2}}))
    assert main([str(file)]) == 2
    assert "step" in capsys.readouterr().err
    file.write_text(json.dumps({**asked, "model": "/nowhere"}))
    assert main([str(file)]) == 2
    assert capsys.readouterr().err.startswith("/nowhere: no tokenizer.json")
    file.write_text(json.dumps(asked))
    assert main([str(file)]) == 0
    assert "80 rows: 80 usable, 0 refused, 0 dropped" in capsys.readouterr().err
    trained = json.loads((tmp_path / "out" / "trained.json").read_text())
    assert trained["epochs"] == 1
    assert trained["model"] == "model"
    assert trained["tokens"] == trained["slots"]["trained"]


def test_epochs_and_steps_exclude_each_other() -> None:
    for wrong in ({}, {"epochs": 1, "steps": 1}):
        with pytest.raises(ValueError, match="exactly one"):
            Sft(**wrong)


@pytest.mark.heavy
def test_two_processes_train_the_same_as_one(model: str, data: str, tmp_path: Path) -> None:
    told = {}
    for processes in (1, 2):
        asked = {"settings": {"epochs": 1, "batch_sequences": 5, "sequence_tokens": 64, "threads": 1}, "model": model}
        asked |= {"data": [data], "out": str(tmp_path / f"out{processes}")}
        file = tmp_path / f"settings{processes}.json"
        file.write_text(json.dumps(asked))
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"] if processes == 2 else []
        subprocess.run([sys.executable, *launch, "-m", "train.sft", str(file)], check=True, timeout=250)
        told[processes] = [row["loss"] for row in read_metrics(str(tmp_path / f"out{processes}")) if "loss" in row]
    assert told[2] == pytest.approx(told[1], rel=1e-5)


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("config.json", b"{", "config.json: not there or not JSON"),
        ("model.safetensors", b"", "model.safetensors: damaged"),
        ("tokenizer.json", b"{", "tokenizer.json: is no tokenizer"),
        ("tokenizer.json", b"[]", "tokenizer.json: is no tokenizer"),
        ("tokenizer.json", b"\xff", "tokenizer.json: is no tokenizer"),
        ("tokenizer_config.json", b"{", "tokenizer_config.json: is no JSON object"),
    ],
)
def test_a_model_folder_that_is_broken_is_told_before_any_row_is_read(
    model: str, tmp_path: Path, name: str, data: bytes, told: str
) -> None:
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "model" / name).write_bytes(data)
    with pytest.raises(ValueError, match=told):
        run(SETTINGS, model=str(tmp_path / "model"), data="/nowhere.jsonl", out=str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.jsonl.gz", gzip.compress(b"{}\n" * 9000, mtime=0)[:40]), ("a.parquet", b"PAR1")],
    ids=["gz", "parquet"],
)
def test_a_file_of_rows_that_is_torn_is_told(model: str, tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SftError, match=f"{name}: cannot be read"):
        run(SETTINGS, model=model, data=str(tmp_path / name), out=str(tmp_path / "out"))
