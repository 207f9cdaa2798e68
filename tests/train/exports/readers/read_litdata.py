"""Reads folders with litdata's StreamingDataset and TokensLoader: blocks of tokens."""

import sys

import numpy as np
from litdata import StreamingDataset, TokensLoader

out, block, *folders = sys.argv[1:]
found = {}
for number, folder in enumerate(folders):
    dataset = StreamingDataset(folder, item_loader=TokensLoader(block_size=int(block)))
    blocks = [np.asarray(row) for row in dataset]
    assert len(blocks) == len(dataset)
    found[f"tokens{number}"] = np.concatenate(blocks).astype(np.int64) if blocks else np.zeros(0, np.int64)
np.savez(out, **found)
