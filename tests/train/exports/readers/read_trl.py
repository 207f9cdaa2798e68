"""Takes JSON lines as TRL's SFTTrainer does: input_ids to be packed, or messages to be rendered."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from datasets import load_dataset
from transformers import PreTrainedTokenizerFast
from trl.data_utils import apply_chat_template, is_conversational, pack_dataset

TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"

out, content, folder, tokenizer_file = sys.argv[1:]
found = {}
with tempfile.TemporaryDirectory() as cache:
    files = sorted(map(str, Path(folder).rglob("*.jsonl")))
    dataset = load_dataset("json", data_files=files, split="train", cache_dir=cache)
    if content == "tokens":
        lists = [row["input_ids"] for row in dataset]
        found["tokens"] = np.concatenate([np.array(ids, np.int64) for ids in lists])
        found["ends"] = np.cumsum([len(ids) for ids in lists], dtype=np.int64)
        packed = pack_dataset(dataset, seq_length=64, strategy="wrapped")
        found["packed"] = np.concatenate([np.array(row["input_ids"], np.int64) for row in packed])
    else:
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=tokenizer_file)
        tokenizer.chat_template = TEMPLATE
        assert all(is_conversational(row) for row in dataset)
        texts = [apply_chat_template(row, tokenizer)["text"] for row in dataset]
        found["texts"] = np.array(json.dumps(texts))
np.savez(out, **found)
