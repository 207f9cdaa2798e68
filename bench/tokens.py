"""Tokenising against the raw library and datatrove's DocumentTokenizer: `python -m bench.tokens [megabytes]`.

The same documents (the shared `text` data: prose, code, mathematics, manuals, nine languages) and the same tokenizer,
which was trained here on a sample of them.

encode: texts to arrays of ids on one core, CPU time, by `encode_batch` of the library tokenizers and by ours, which
starts each round with nothing remembered. loaded: the same with a tokenizer of another pre-tokenizer, which ours hands
to the library as it is. shards: documents in Parquet to token shards in shuffled order at 2 workers, wall time, by
datatrove's DocumentTokenizer and by `Tokens`; ours stores where each document lies, and its digest, too.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers

from jobs.engines.local import LocalEngine
from train import Tokenizer, Tokens, train_tokenizer
from train.tokenise.tokenizer import one_thread

ROOT = Path(__file__).resolve().parent.parent
END = "<|endoftext|>"
ROUNDS, WORKERS, SHARDS, VOCAB = 3, 2, 4, 32_768
TARGET_ENCODE, TARGET_SHARDS = 0.95, 1.5


def documents(megabytes: float) -> list[str]:
    """A like share of each domain, `megabytes` together."""
    folder = Path(os.environ.get("GRISTMILL_SHARED", ROOT.parent / "shared")) / "data" / "text"
    domains = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            domains.append([json.loads(line)["text"] for line in lines])
    if not domains:
        raise SystemExit(f"bench.tokens: no documents in {folder}; set GRISTMILL_SHARED to the shared folder")
    share = megabytes * 1e6 / sum(len(text.encode()) for texts in domains for text in texts)
    step = max(1, round(1 / share))
    return [text for texts in domains for text in texts[::step]]


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def report(name: str, megabytes: float, times: list[tuple[float, float]], whose: str, target: float) -> None:
    ours = megabytes / statistics.median(one for one, _ in times)
    theirs = megabytes / statistics.median(other for _, other in times)
    told = f"ours {ours:.2f} MB/s, {whose} {theirs:.2f} MB/s, ratio {ours / theirs:.2f} (target {target})"
    print(f"bench tokens {name}: {told}", flush=True)


def encode(name: str, texts: list[str], megabytes: float, told: str) -> None:
    array = pa.array(texts, pa.large_string())
    library = Tokenizer(told).library

    def theirs() -> None:
        with one_thread():
            found = library.encode_batch(array.to_pylist(), add_special_tokens=False)
            [np.array(encoding.ids, np.uint32) for encoding in found]

    times = []
    for _ in range(ROUNDS):
        ours = Tokenizer(told)
        ours.encode([""])
        times.append((cpu_seconds(lambda ours=ours: ours.encode(array)), cpu_seconds(theirs)))  # type: ignore[misc]
    report(name, megabytes, times, "encode_batch", TARGET_ENCODE)


def shards(texts: list[str], megabytes: float, tokenizer: Tokenizer, work: Path) -> None:
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    path = work / "tokenizer.json"
    path.write_text(tokenizer.json)
    ids = [f"{i:032x}" for i in range(len(texts))]
    table = pa.table(
        {"id": ids, "source": ["s"] * len(ids), "domain": ["d"] * len(ids), "text": pa.array(texts, pa.large_string())}
    )
    (work / "in").mkdir()
    for number in range(SHARDS):
        pq.write_table(table.take(np.arange(number, len(ids), SHARDS)), work / "in" / f"part-{number:05d}.parquet")
    inputs = [str(found) for found in sorted((work / "in").iterdir())]

    def ours(to: Path) -> None:
        engine = LocalEngine(workers=WORKERS, memory_bytes=1 << 29)
        Tokens(tokenizer=str(path)).run(inputs, engine.shuffle(), str(to / "work"), str(to / "out"), seed=1)
        engine.close()

    def theirs(to: Path) -> None:
        steps = [ParquetReader(str(work / "in")), DocumentTokenizer(str(to / "out"), str(path), eos_token=END, seed=1)]
        LocalPipelineExecutor(
            steps, tasks=SHARDS, workers=WORKERS, logging_dir=str(to / "logs"), start_method="forkserver"
        ).run()

    times = [
        (seconds(lambda to=to: ours(to / "ours")), seconds(lambda to=to: theirs(to / "theirs")))  # type: ignore[misc]
        for to in (work / str(number) for number in range(ROUNDS))
    ]
    report("shards", megabytes, times, "datatrove", TARGET_SHARDS)


def main() -> None:
    os.environ |= {"TQDM_DISABLE": "1", "LOGURU_AUTOINIT": "False"}  # datatrove's progress, in its workers too
    texts = documents(float(sys.argv[1]) if len(sys.argv) > 1 else 12.0)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    tokenizer = train_tokenizer([texts[::3]], vocab_size=VOCAB, special_tokens=(END,))
    print(f"{len(texts)} documents, {megabytes:.1f} MB, {VOCAB} entries, median of {ROUNDS}")
    encode("encode", texts, megabytes, tokenizer.json)
    other = tokenizers.Tokenizer.from_str(tokenizer.json)
    other.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    encode("loaded", texts, megabytes, other.to_str())
    with tempfile.TemporaryDirectory() as work:
        shards(texts, megabytes, tokenizer, Path(work))


if __name__ == "__main__":
    main()
