"""Readers of the formats' layouts, written from their descriptions and sharing no code with the exports."""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

Documents = list[list[int]]


def cut(ids: np.ndarray[Any, Any], ends: list[int]) -> Documents:
    return [ids[start:end].tolist() for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def read_megatron(prefix: Path) -> tuple[str, Documents]:
    index = prefix.with_name(prefix.name + ".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, sequences, entries = struct.unpack_from("<QBQQ", index, 9)
    assert (version, entries) == (1, sequences + 1)
    dtype = {4: "<i4", 8: "<u2"}[code]
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    offsets = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    documents = np.frombuffer(index, "<i8", entries, 34 + 12 * sequences)
    assert len(index) == 42 + 20 * sequences
    assert documents.tolist() == list(range(sequences + 1))
    data = prefix.with_name(prefix.name + ".bin").read_bytes()
    read = [np.frombuffer(data, dtype, n, at).tolist() for n, at in zip(lengths, offsets, strict=True)]
    assert sum(lengths) * np.dtype(dtype).itemsize == len(data)
    return dtype, read


def read_datatrove(folder: Path, width: int) -> Documents:
    found: Documents = []
    for path in sorted(folder.glob("*.ds")):
        ids = np.frombuffer(path.read_bytes(), f"<u{width}")
        ends = np.frombuffer(path.with_name(path.name + ".index").read_bytes(), "<u8").tolist()
        tokenizer, tokens, _ = path.with_name(path.name + ".metadata").read_text().split("\n")
        assert tokenizer.endswith(f"|{width}")
        assert int(tokens) == len(ids) == ends[-1]
        found += cut(ids, ends)
    return found


def read_mds(folder: Path) -> Documents:
    index = json.loads((folder / "index.json").read_text())
    assert index["version"] == 2
    found: Documents = []
    for shard in index["shards"]:
        data = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"] < 1 << 32
        assert xxhash.xxh3_128_hexdigest(data) == shard["raw_data"]["hashes"]["xxh3_128"]
        (samples,) = struct.unpack_from("<I", data)
        assert samples == shard["samples"] > 0
        offsets = np.frombuffer(data, "<u4", samples + 1, 4).tolist()
        columns = json.loads(data[4 + 4 * (samples + 1) : offsets[0]])
        assert {key: shard[key] for key in columns} == columns
        assert offsets[-1] == len(data)
        kind, dtype, *shape = columns["column_encodings"][0].split(":")
        assert kind == "ndarray"
        for start, end in zip(offsets[:-1], offsets[1:], strict=True):
            sample = data[start:end]
            if shape:
                assert columns["column_sizes"] == [len(sample)]
            else:
                assert struct.unpack_from("<I", sample) == (len(sample) - 4,)
                assert sample[4] >> 2 == 1
                width = 1 << (sample[4] & 3)
                count = int.from_bytes(sample[5 : 5 + width], "little")
                sample = sample[5 + width :]
                assert width == (1 if count < 256 else 2 if count < 65536 else 4)
                assert len(sample) == count * np.dtype(dtype).itemsize
            found.append(np.frombuffer(sample, np.dtype(dtype).newbyteorder("<")).tolist())
    return found


def read_litdata(folder: Path) -> tuple[list[int], Documents]:
    """Tokens of each chunk, and all items."""
    index = json.loads((folder / "index.json").read_text())
    dtype = {"no_header_numpy:5": "<u2", "no_header_numpy:6": "<u4"}[index["config"]["data_format"][0]]
    dims, found = [], []
    for chunk in index["chunks"]:
        data = (folder / chunk["filename"]).read_bytes()
        (items,) = struct.unpack_from("<I", data)
        offsets = np.frombuffer(data, "<u4", items + 1, 4).tolist()
        assert (len(data), items, offsets[0], offsets[-1]) == (
            chunk["chunk_bytes"],
            chunk["chunk_size"],
            4 + 4 * (items + 1),
            len(data),
        )
        read = [np.frombuffer(data[a:b], dtype).tolist() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        assert chunk["dim"] == sum(map(len, read))
        dims.append(chunk["dim"])
        found += read
    return dims, found


def read_olmo(folder: Path, dtype: str) -> tuple[Documents, list[list[str]]]:
    """Documents, and the table's other columns (id, source, row)."""
    found: Documents = []
    told: list[list[str]] = []
    for path in sorted(folder.glob("*.npy")):
        ids = np.fromfile(path, dtype)
        table = gzip.decompress(path.with_name(path.stem + ".csv.gz").read_bytes()).decode()
        lines = list(csv.reader(io.StringIO(table)))
        ends = [int(line[1]) for line in lines]
        assert [int(line[0]) for line in lines] == [0, *ends[:-1]]
        assert ends[-1] == len(ids)
        found += cut(ids, ends)
        told += [line[2:] for line in lines]
    return found, told


def read_llmc(paths: list[Path], mark: int) -> Documents:
    """Documents, each without the mark that stands before it; ids of documents must not hold the mark."""
    found: Documents = []
    for path in paths:
        data = path.read_bytes()
        header = np.frombuffer(data, "<i4", 256)
        dtype = {(20240520, 1): "<u2", (20240801, 7): "<u4"}[int(header[0]), int(header[1])]
        ids = np.frombuffer(data, dtype, offset=1024)
        assert header[2] == len(ids)
        assert not header[3:].any()
        starts = np.flatnonzero(ids == mark)
        assert starts[0] == 0
        found += [part[1:].tolist() for part in np.split(ids, starts[1:])]
    return found
