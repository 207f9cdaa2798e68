"""Tokenising against the raw libraries and datatrove's DocumentTokenizer: `python -m bench.tokens [megabytes]`.

The same documents (the shared `text` data: prose, code, mathematics, manuals, nine languages) and the same tokenizer,
which was trained here on a sample of them. Each pair of runs is made one after the other, in turns first; ours starts
each with nothing remembered.

encode: texts to arrays of ids on one core, CPU time, by `encode_batch` of the library tokenizers and by ours.
published, llama2: the same with pre-tokenizers that ours may cut, cl100k_base's and sentencepiece's BPE. foreign: with
one that ours hands to the library as it is. tiktoken, sentencepiece: those vocabularies by those libraries themselves.
shards: documents in Parquet to token shards in shuffled order at 2 workers, wall time, by datatrove's DocumentTokenizer
and by `Tokens`; ours stores where each document lies, and its digest, too.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers

from jobs.engines.local import LocalEngine
from train import Tokenizer, Tokens, load_tokenizer, train_tokenizer
from train.tokenise.ranks import KNOWN, printed
from train.tokenise.tokenizer import one_thread

ROOT = Path(__file__).resolve().parent.parent
END = "<|endoftext|>"
ROUNDS, WORKERS, SHARDS, VOCAB = 3, 2, 4, 32_768
TARGET_ENCODE, TARGET_SHARDS = 0.95, 1.5


@dataclass(frozen=True)
class Corpus:
    texts: list[str]
    megabytes: float


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


def report(name: str, corpus: Corpus, times: list[tuple[float, float]], whose: str, target: float | None) -> None:
    ours = corpus.megabytes / statistics.median(one for one, _ in times)
    theirs = corpus.megabytes / statistics.median(other for _, other in times)
    wanted = "no target" if target is None else f"target {target}"
    told = f"ours {ours:.2f} MB/s, {whose} {theirs:.2f} MB/s, ratio {ours / theirs:.2f} ({wanted})"
    print(f"bench tokens {name}: {told}", flush=True)


def encode(name: str, corpus: Corpus, told: str) -> None:
    """Ours against the library tokenizers, which it is made of."""
    library = Tokenizer(told).library

    def theirs(texts: list[str]) -> None:
        with one_thread():
            found = library.encode_batch(texts, add_special_tokens=False)
            [np.array(encoding.ids, np.uint32) for encoding in found]

    report(name, corpus, against(corpus, told, theirs), "encode_batch", TARGET_ENCODE)


def against(corpus: Corpus, told: str, theirs: Callable[[list[str]], object]) -> list[tuple[float, float]]:
    """CPU seconds of ours, which remembers nothing when it begins, and of theirs."""
    array = pa.array(corpus.texts, pa.large_string())
    times = []
    for number in range(ROUNDS):
        tokenizer = Tokenizer(told)
        tokenizer.encode([""])
        times.append(in_turn(number, cpu_seconds, partial(tokenizer.encode, array), lambda: theirs(array.to_pylist())))
    return times


def in_turn(
    number: int,
    clock: Callable[[Callable[[], object]], float],
    ours: Callable[[], object],
    theirs: Callable[[], object],
) -> tuple[float, float]:
    """Seconds of both, one after the other: ours first in every other round."""
    if number % 2:
        later = clock(theirs)
        return clock(ours), later
    first = clock(ours)
    return first, clock(theirs)


def by_tiktoken(corpus: Corpus, work: Path) -> None:
    """cl100k_base's pattern with ranks trained here: by the library tokenizers, and by tiktoken itself."""
    import tiktoken

    trained = train_tokenizer([corpus.texts[::3]], vocab_size=VOCAB).library.get_vocab()
    byte_of = {printed(bytes([byte])): byte for byte in range(256)}
    ranks = {bytes(byte_of[letter] for letter in token): rank for token, rank in trained.items()}
    path = work / "own.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    pattern = KNOWN["cl100k_base"].pattern
    told = load_tokenizer(str(path), pattern=pattern).json
    encode("published", corpus, told)
    other = tiktoken.Encoding("own", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def theirs(texts: list[str]) -> None:
        [np.array(other.encode_ordinary(text), np.uint32) for text in texts]

    report("tiktoken", corpus, against(corpus, told, theirs), "tiktoken", None)


def by_sentencepiece(corpus: Corpus, work: Path) -> None:
    """A model with Llama 2's settings, trained on a sample: by the library tokenizers, and by sentencepiece itself."""
    import sentencepiece

    lines = [line for text in corpus.texts[::9] for line in text.split("\n") if 0 < len(line) < 1000]
    path = work / "own.model"
    with path.open("wb") as out:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=out, model_type="bpe", vocab_size=8000, byte_fallback=True,
            normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
            allow_whitespace_only_pieces=True, num_threads=1, minloglevel=2,
        )  # fmt: skip
    told = load_tokenizer(str(path)).json
    encode("llama2", corpus, told)
    other = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def theirs(texts: list[str]) -> None:
        [np.array(other.encode(text), np.uint32) for text in texts]

    report("sentencepiece", corpus, against(corpus, told, theirs), "sentencepiece", None)


def shards(corpus: Corpus, tokenizer: Tokenizer, work: Path) -> None:
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    path = work / "tokenizer.json"
    path.write_text(tokenizer.json)
    texts = corpus.texts
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
        with quiet():
            LocalPipelineExecutor(
                steps, tasks=SHARDS, workers=WORKERS, logging_dir=str(to / "logs"), start_method="forkserver"
            ).run()

    times = []
    for number in range(ROUNDS):
        to = work / str(number)
        times.append(in_turn(number, seconds, partial(ours, to / "ours"), partial(theirs, to / "theirs")))
    report("shards", corpus, times, "datatrove", TARGET_SHARDS)


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing to stderr, from workers that start meanwhile neither: datatrove logs each task there."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


def main() -> None:
    os.environ["TQDM_DISABLE"] = "1"  # datatrove's progress, in its workers too
    texts = documents(float(sys.argv[1]) if len(sys.argv) > 1 else 12.0)
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    tokenizer = train_tokenizer([texts[::3]], vocab_size=VOCAB, special_tokens=(END,))
    corpus = Corpus(texts, megabytes)
    print(f"{len(texts)} documents, {megabytes:.1f} MB, {VOCAB} entries, median of {ROUNDS}")
    encode("encode", corpus, tokenizer.json)
    other = tokenizers.Tokenizer.from_str(tokenizer.json)
    other.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    encode("foreign", corpus, other.to_str())
    with tempfile.TemporaryDirectory() as work:
        by_tiktoken(corpus, Path(work))
        by_sentencepiece(corpus, Path(work))
        shards(corpus, tokenizer, Path(work))


if __name__ == "__main__":
    main()
