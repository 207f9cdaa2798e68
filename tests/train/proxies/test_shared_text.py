"""Proxies on real text: what a mixing law needs to see is there, and what is killed or divided trains the same."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter
from safetensors.numpy import load_file

from jobs.engines.duckdb_shuffle import DuckdbShuffle
from shards.store import write_json
from train import Tokens
from train.pretrain import Pretrain
from train.pretrain import run as pretrain
from train.pretrain.metrics import TIMED, read_metrics
from train.proxies import Proxies, run

ROOT = Path(__file__).parents[3]
DOMAINS = {"books": "books_en", "code": "code_python", "encyclopedia": "encyclopedia_en", "math": "math_en"}
LATIN = (0.6, 0.25, 0.1, 0.05)
PART_CHARS, DOMAIN_CHARS = 1_500, 900_000


@pytest.fixture(scope="module")
def real_tokens(shared, tmp_path_factory):
    """Token shards of a part of four of the shared text's domains."""
    paths = {domain: shared / "text" / f"{name}.jsonl.gz" for domain, name in DOMAINS.items()}
    return made_tokens(tmp_path_factory.mktemp("real"), paths, vocab_size=512, chars=DOMAIN_CHARS)


@pytest.fixture(scope="module")
def all_tokens(shared, tmp_path_factory):
    """Token shards of a part of each of the shared text's domains."""
    paths = {path.name.split(".")[0]: path for path in sorted((shared / "text").glob("*.jsonl.gz"))}
    return made_tokens(tmp_path_factory.mktemp("all"), paths, vocab_size=1024, chars=2 * DOMAIN_CHARS)


def made_tokens(folder, paths, *, vocab_size, chars):
    """Token shards of the first texts of each file, through the recipe's own step; the folder."""
    rows = [
        {"id": f"{domain}-{number}", "source": domain, "domain": domain, "text": text}
        for domain, path in paths.items()
        for number, text in enumerate(parts(path, chars))
    ]
    schema = pa.schema([(name, pa.string()) for name in ("id", "source", "domain")] + [("text", pa.large_string())])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "part-00000-of-00001.parquet")
    out = str(folder / "out")
    told = Tokens(vocab_size=vocab_size).run(
        [str(folder / "part-00000-of-00001.parquet")], DuckdbShuffle(), str(folder / "work"), out, seed=7
    )
    write_json(f"{out}/manifest.json", {"format": "gristmill-1", "kind": "tokens", **told})
    return out


def parts(path, chars):
    """Texts of a file in parts of a few pages, about so many characters in all, and no more than a quarter of one."""
    found, total = [], 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            for start in range(0, min(len(text), chars // 4), PART_CHARS):
                found.append(text[start : start + PART_CHARS])
                total += len(found[-1])
            if total > chars:
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


@pytest.mark.heavy
def test_a_million_parameters_learn_each_domain_of_the_shared_text_better_the_more_it_weighs(all_tokens, tmp_path):
    names = sorted(json.loads(Path(all_tokens, "manifest.json").read_text())["domains"])
    assert len(names) == 7
    mixtures = {}
    for name, (first, second) in {"first": (6, 1), "even": (1, 1), "second": (1, 6)}.items():
        weights = {domain: second if number % 2 else first for number, domain in enumerate(names)}
        mixtures[name] = {domain: weight / sum(weights.values()) for domain, weight in weights.items()}
    started = time.monotonic()
    table = run(
        Proxies(
            mixtures=mixtures,
            sizes={"1m": {"layers": 4, "width": 128, "heads": 4}},
            tokens=300_000,
            sequence_tokens=256,
            batch_sequences=8,
            optimizer="muon",
            learning_rate=0.01,
            warmup_steps=20,
            evaluation_sequences=32,
            workers=2,
        ),
        tokens=all_tokens,
        out=str(tmp_path / "out"),
        progress=sys.stderr,
    )
    print(f"\n{table['parameters'][0].as_py():,} parameters, 3 x 300,000 tokens: {time.monotonic() - started:.0f} s")
    assert 0.9e6 < table["parameters"][0].as_py() < 1.1e6
    for domain in names:
        rows = table.filter(pc.field("metric") == f"bits_per_byte/{domain}").sort_by(f"weight_{domain}").to_pylist()
        losses = [row["value"] for row in rows]
        print(f"{domain:22}", *(f"{row[f'weight_{domain}']:.3f}: {row['value']:.3f}" for row in rows))
        assert len(set(losses)) == 3
        assert losses == sorted(losses, reverse=True), domain


MILLION = Pretrain(
    layers=4,
    width=128,
    heads=4,
    held_out=0.02,
    sequence_tokens=256,
    batch_sequences=8,
    packing="best_fit",
    steps=36,
    learning_rate=0.001,  # at 0.003 rounding grows by six orders of magnitude in 36 updates, and would hide a fault
    warmup_steps=8,
    checkpoint_every_steps=6,
    evaluate_every_steps=18,
    evaluation_sequences=4,
    threads=1,
)


def rows_of(out):
    return [{key: row[key] for key in row if key not in TIMED} for row in read_metrics(str(out))]


@pytest.mark.heavy
def test_a_million_parameters_are_bit_equal_after_kills_and_the_same_by_two_processes(all_tokens, tmp_path):
    whole = pretrain(MILLION, tokens=all_tokens, out=str(tmp_path / "whole"))
    assert 0.9e6 < whole.parameters < 1.1e6
    weights = load_file(Path(whole.model, "model.safetensors"))
    path, metrics = tmp_path / "settings.json", tmp_path / "killed" / "metrics.jsonl"
    told = {"settings": MILLION.plain(), "tokens": [all_tokens], "out": str(tmp_path / "killed")}
    path.write_text(json.dumps(told))
    for wanted in (9, 20):  # rows of metrics after which the kill comes
        command = [sys.executable, "-m", "train.pretrain", str(path)]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as child:
            while child.poll() is None and (not metrics.exists() or metrics.read_bytes().count(b"\n") < wanted):
                time.sleep(0.01)
            assert child.poll() is None
            child.send_signal(signal.SIGKILL)
    again = pretrain(MILLION, tokens=all_tokens, out=str(tmp_path / "killed"))
    found = load_file(Path(again.model, "model.safetensors"))
    assert found.keys() == weights.keys()
    assert all(np.array_equal(found[name], weight) for name, weight in weights.items())
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "whole")

    path.write_text(json.dumps(told | {"out": str(tmp_path / "two")}))
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--module"]
    done = subprocess.run(
        [*launcher, "train.pretrain", str(path)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    one, two = rows_of(tmp_path / "whole"), rows_of(tmp_path / "two")
    assert [row["kind"] for row in one] == [row["kind"] for row in two]
    for row, other in zip(one, two, strict=True):
        key = {"step": "loss", "evaluation": "bits_per_byte"}[row["kind"]]
        assert other[key] == pytest.approx(row[key], rel=1e-5)  # float32 sums in another order: 1e-7 was seen
