"""The four rule sets against datatrove's four filters, on one core: `python -m bench.rules`.

The same documents (the shared `text` data: prose, code, mathematics, manuals, nine languages), all rules of Gopher
quality, Gopher repetition, C4 and FineWeb. Ours measures every signal and stores it; datatrove's filters stop at the
first rule that fails. datatrove may keep its split of a document from one filter to the next.
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)

from filters.quality import Quality

ROOT = Path(__file__).resolve().parent.parent
TARGET_RATIO, TARGET_SPEED = 50, 5.0
EACH, LONGEST, ROUNDS = 30, 8_000, 3


def documents() -> list[str]:
    folder = Path(os.environ.get("GRISTMILL_SHARED", ROOT.parent / "shared")) / "data" / "text"
    texts = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found = [json.loads(line)["text"] for line in lines]
        texts += [whole[:LONGEST] for whole in found[:: max(1, len(found) // EACH)][:EACH]]
    if not texts:
        raise SystemExit(f"bench.rules: no documents in {folder}; set GRISTMILL_SHARED to the shared folder")
    return texts


def seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def main() -> None:
    texts = documents()
    megabytes = sum(len(whole.encode()) for whole in texts) / 1e6
    batch = pa.record_batch({"text": pa.array(texts, pa.large_string())})
    quality = Quality()
    steps = [GopherQualityFilter(), GopherRepetitionFilter(), C4QualityFilter(), FineWebQualityFilter()]

    def theirs() -> None:
        for whole in texts:
            for step in steps:
                step.filter(Document(text=whole, id=""))

    quality(batch)
    for step in steps:
        step.filter(Document(text=texts[0], id=""))
    times = [(seconds(lambda: quality(batch)), seconds(theirs)) for _ in range(ROUNDS)]
    ours_mb = megabytes / statistics.median(ours for ours, _ in times)
    their_mb = megabytes / statistics.median(other for _, other in times)
    print(f"{len(texts)} documents, {megabytes:.1f} MB, one core, median of {ROUNDS}")
    print(
        f"bench rules: ours {ours_mb:.1f} MB/s, datatrove {their_mb:.2f} MB/s, "
        f"ratio {ours_mb / their_mb:.0f} (target {TARGET_RATIO})"
    )
    print(f"bench rules speed: ours {ours_mb:.1f} MB/s a core (target {TARGET_SPEED:.0f})")


if __name__ == "__main__":
    main()
