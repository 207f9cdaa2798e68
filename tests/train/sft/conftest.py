"""Model folders of six template families: a small byte-level BPE with the family's special tokens, and its template."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from train.sft.templates import PRESETS, template_source

FAMILIES = {
    # preset: (bos, eos, other special tokens, added tokens that are not special)
    "chatml": (None, "<|im_end|>", ["<|im_start|>"], []),
    "qwen2.5": (None, "<|im_end|>", ["<|im_start|>", "<|endoftext|>"], ["<tool_call>", "</tool_call>"]),
    "qwen3": (
        None,
        "<|im_end|>",
        ["<|im_start|>", "<|endoftext|>"],
        ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"],
    ),
    "llama3": ("<|begin_of_text|>", "<|eot_id|>", ["<|start_header_id|>", "<|end_header_id|>", "<|end_of_text|>"], []),
    "gemma": ("<bos>", "<eos>", ["<start_of_turn>", "<end_of_turn>", "<pad>"], []),
    "mistral": ("<s>", "</s>", ["[INST]", "[/INST]"], []),
}
ENDS = {
    "chatml": "<|im_end|>",
    "qwen2.5": "<|im_end|>",
    "qwen3": "<|im_end|>",
    "llama3": "<|eot_id|>",
    "gemma": "<end_of_turn>",
    "mistral": "</s>",
}
WORDS = (
    "the mill grinds grain into flour, and the baker asks: how fine? user assistant system model def f(x): return x\n"
)


@dataclass(frozen=True)
class Family:
    name: str
    folder: str
    end: str
    special: tuple[str, ...]


def write_tokenizer(folder: Path, bos: str | None, eos: str, special: list[str], added: list[str]) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=True)  # as many have it: it must not blur edges
    names = [name for name in (bos, eos, *special) if name]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=names, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator([WORDS * 20], trainer)
    made.add_tokens([AddedToken(name, special=False, normalized=False) for name in added])
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos, "pad_token": eos}
    (folder / "tokenizer_config.json").write_text(json.dumps(config | ({"bos_token": bos} if bos else {})))


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Family]:
    root = tmp_path_factory.mktemp("families")
    made = {}
    for name in PRESETS:
        bos, eos, special, added = FAMILIES[name]
        write_tokenizer(root / name, bos, eos, special, added)
        (root / name / "chat_template.jinja").write_text(template_source(name, ""))
        names = tuple(token for token in (bos, eos, *special) if token)
        made[name] = Family(name, str(root / name), ENDS[name], names)
    return made
