"""Reads folders with datatrove's DatatroveFolderDataset: windows of tokens, and each token's place in its document."""

import sys

import numpy as np
from datatrove.utils.dataset import DatatroveFolderDataset

out, sequence, width, *folders = sys.argv[1:]
found = {}
for number, folder in enumerate(folders):
    dataset = DatatroveFolderDataset(folder, int(sequence), token_size=int(width), return_positions=True)
    rows = [dataset[row] for row in range(len(dataset))]
    found[f"tokens{number}"] = np.stack([row["input_ids"].numpy() for row in rows]).astype(np.int64)
    found[f"positions{number}"] = np.stack([row["positions"].numpy() for row in rows]).astype(np.int64)
np.savez(out, **found)
