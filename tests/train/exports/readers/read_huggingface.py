"""Reads a folder with datasets.load_dataset: configurations of input_ids, or rows of documents."""

import json
import sys
import tempfile

import numpy as np
from datasets import get_dataset_config_names, load_dataset

out, content, folder = sys.argv[1:]
found = {}
with tempfile.TemporaryDirectory() as cache:
    names = get_dataset_config_names(folder)
    for name in names:
        dataset = load_dataset(folder, name, split="train", cache_dir=cache)
        if content == "tokens":
            lists = [ids for batch in dataset.iter(1000) for ids in batch["input_ids"]]
            found[f"tokens/{name}"] = np.concatenate([np.array(ids, np.int64) for ids in lists])
            found[f"ends/{name}"] = np.cumsum([len(ids) for ids in lists], dtype=np.int64)
            found[f"ids/{name}"] = np.array(dataset["id"][:])
        else:
            rows = [{key: row[key] for key in ("id", "domain", "text")} for row in dataset]
            found[f"rows/{name}"] = np.array(json.dumps(rows))
np.savez(out, **found)
