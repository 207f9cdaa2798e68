"""The environment of oracles, and token shards of real text."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[3]
READERS = Path(__file__).parent / "readers"
Read = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Runs readers/read_NAME.py with these arguments where the target libraries are; gives what it found."""
    folder = Path(os.environ.get("GRISTMILL_ORACLES", ROOT / "build/oracles"))
    made = subprocess.run(
        ["bash", ROOT / ".ci/oracles.sh", folder],
        env={**os.environ, "ORACLES_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.fail(f"the environment of oracles could not be made: {made.stderr[-2000:]}")

    def read(name: str, *arguments: Any) -> dict[str, Any]:
        work = tmp_path_factory.mktemp(name)
        out = work / "found.npz"
        done = subprocess.run(
            [folder / "bin/python", "-I", READERS / f"read_{name}.py", out, *map(str, arguments)],
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "HOME": str(work), "TMPDIR": str(work)},
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        with np.load(out) as found:
            return {key: found[key] for key in found.files}

    return read


@pytest.fixture(scope="session")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Token shards of three domains of real text: some 1.5 million tokens, several shards a domain."""
    from jobs.engines.duckdb_shuffle import DuckdbShuffle
    from train import Tokens

    work = tmp_path_factory.mktemp("real")
    paths = []
    for name in ("code_python", "encyclopedia_en", "books_en"):
        with gzip.open(shared / "text" / f"{name}.jsonl.gz", "rt") as lines:
            texts = [json.loads(line)["text"] for line in islice(lines, 60 if name != "encyclopedia_en" else 3000)]
        table = pa.table(
            {
                "id": [f"{name}-{row}" for row in range(len(texts))],
                "source": [name] * len(texts),
                "domain": [name.split("_")[0]] * len(texts),
                "text": pa.array([text[:200_000] for text in texts], pa.large_string()),
            }
        )
        paths.append(str(work / f"{name}.parquet"))
        pq.write_table(table, paths[-1])
    tokens = Tokens(vocab_size=2048, sample_bytes=1 << 20, shard_tokens=300_000)
    told = tokens.run(paths, DuckdbShuffle(), str(work / "work"), str(work / "tokens"), seed=3)
    (work / "tokens/manifest.json").write_text(json.dumps({"kind": "tokens", **told}))
    return work / "tokens"
