"""Reads folders with MosaicML's StreamingDataset, through a download, so that hashes are checked."""

import importlib.machinery
import sys
import tempfile
import types

import numpy as np

# It imports torchvision for images, which would bring another torch; nothing of it is used for tokens.
for name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "torchvision.transforms.functional"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
sys.modules["torchvision.datasets"].VisionDataset = object
sys.modules["torchvision.transforms.functional"].to_tensor = None
from streaming import StreamingDataset  # noqa: E402

out, *folders = sys.argv[1:]
found = {}
for number, folder in enumerate(folders):
    with tempfile.TemporaryDirectory() as local:
        dataset = StreamingDataset(
            remote=folder, local=local, shuffle=False, batch_size=1, num_canonical_nodes=1, validate_hash="xxh3_128"
        )
        documents = [sample["tokens"] for sample in dataset]
        assert len(documents) == len(dataset)
    found[f"tokens{number}"] = np.concatenate(documents).astype(np.int64)
    found[f"ends{number}"] = np.cumsum([len(ids) for ids in documents], dtype=np.int64)
np.savez(out, **found)
