"""Proxies on real text: what a mixing law needs to see is there, and a swarm that is killed loses nothing."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from shards.store import write_json
from train import Tokens
from train.proxies import Proxies, run

DOMAINS = {"books": "books_en", "code": "code_python", "encyclopedia": "encyclopedia_en", "math": "math_en"}
LATIN = (0.6, 0.25, 0.1, 0.05)
PART_CHARS, DOMAIN_CHARS = 1_500, 900_000


@pytest.fixture(scope="module")
def real_tokens(shared, tmp_path_factory):
    """Token shards of a part of the shared text, through the recipe's own step."""
    folder = tmp_path_factory.mktemp("real")
    rows = [
        {"id": f"{domain}-{number}", "source": domain, "domain": domain, "text": text}
        for domain, name in DOMAINS.items()
        for number, text in enumerate(parts(shared / "text" / f"{name}.jsonl.gz"))
    ]
    schema = pa.schema([(name, pa.string()) for name in ("id", "source", "domain")] + [("text", pa.large_string())])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "part-00000-of-00001.parquet")
    out = str(folder / "out")
    told = Tokens(vocab_size=512).run(
        [str(folder / "part-00000-of-00001.parquet")], DuckdbShuffle(), str(folder / "work"), out, seed=7
    )
    write_json(f"{out}/manifest.json", {"format": "gristmill-1", "kind": "tokens", **told})
    return out


def parts(path):
    """Texts of a file in parts of a few pages, up to DOMAIN_CHARS in all."""
    found, total = [], 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            for start in range(0, min(len(text), DOMAIN_CHARS // 4), PART_CHARS):
                found.append(text[start : start + PART_CHARS])
                total += len(found[-1])
            if total > DOMAIN_CHARS:
                return found
    return found


def proxies():
    """Four mixtures in which each domain has each weight of LATIN once."""
    names = list(DOMAINS)
    mixtures = {f"m{shift}": dict(zip(names, np.roll(LATIN, shift).tolist(), strict=True)) for shift in range(4)}
    return Proxies(
        mixtures=mixtures,
        sizes={"140k": {"layers": 2, "width": 64, "heads": 4}},
        tokens=200_000,
        sequence_tokens=128,
        batch_sequences=4,
        optimizer="muon",
        learning_rate=0.01,
        mup_base_width=64,
        warmup_steps=20,
        evaluation_sequences=160,
        checkpoint_every_steps=50,
        workers=2,
    )


@pytest.mark.heavy
def test_loss_of_a_domain_falls_as_its_weight_rises_and_a_killed_swarm_ends_in_the_same_table(real_tokens, tmp_path):
    settings = proxies()
    table = run(settings, tokens=real_tokens, out=str(tmp_path / "whole"), progress=sys.stderr)
    assert table.filter(pc.field("status") != "done").num_rows == 0
    assert 100_000 < table["parameters"][0].as_py() < 300_000
    correlations = {}
    for domain in DOMAINS:
        rows = table.filter(pc.field("metric") == f"bits_per_byte/{domain}").to_pylist()
        assert len(rows) == 4
        weights, losses = ([row[key] for row in rows] for key in (f"weight_{domain}", "value"))
        correlations[domain] = np.corrcoef(np.argsort(np.argsort(weights)), np.argsort(np.argsort(losses)))[0, 1]
    assert np.mean(list(correlations.values())) <= -0.9, correlations
    assert max(correlations.values()) <= -0.79, correlations  # one swap of neighbours

    out = tmp_path / "killed"
    path = tmp_path / "settings.json"
    plain = TypeAdapter(Proxies).dump_python(settings, mode="json") | {"workers": 1}
    plain["mixtures"] = {name: plain["mixtures"][name] for name in ("m0", "m1")}
    path.write_text(json.dumps({"settings": plain, "tokens": real_tokens, "out": str(out)}))
    command = [sys.executable, "-m", "train.proxies", str(path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + 150
        while not (list(out.glob("runs/*/result.json")) and list(out.glob("runs/*/checkpoints/*/manifest.json"))):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
    done = len(list(out.glob("runs/*/result.json")))
    assert done == 1
    again = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert "2 runs, 1 of them there already" in again.stderr
    assert pq.read_table(out / "observations.parquet").equals(table.filter(pc.field("mixture").isin(["m0", "m1"])))
