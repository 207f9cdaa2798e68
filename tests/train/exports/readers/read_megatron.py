"""Reads prefixes with megatron-core's IndexedDataset."""

import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
from megatron.core.datasets.indexed_dataset import IndexedDataset  # noqa: E402

out, *prefixes = sys.argv[1:]
found = {}
for number, prefix in enumerate(prefixes):
    dataset = IndexedDataset(prefix, mmap=True)
    documents = [dataset[row] for row in range(len(dataset))]
    assert dataset.document_indices.tolist() == list(range(len(dataset) + 1))
    assert [len(ids) for ids in documents] == dataset.sequence_lengths.tolist()
    found[f"tokens{number}"] = np.concatenate(documents).astype(np.int64)
    found[f"ends{number}"] = np.cumsum(dataset.sequence_lengths, dtype=np.int64)
np.savez(out, **found)
