"""WARC to extracted text at two workers, against datatrove's WarcReader and Trafilatura: `python -m bench.extraction`.

The same WARC files (657 pages of trafilatura's evaluation, 60 of Readability.js's, 955 of documentation sites), the
same executor with two tasks and two workers, text written to disk on both sides. Ours reads title and date besides.
Wall time, the sides in turn, after one warm-up each.

F1 on trafilatura's pages: `with` segments must be in the output, `without` segments must not, white space normalised.
On Readability's: words of the output against those of the reviewed text, mean of the pages. datatrove's time limit for
a page is raised from 1 to 20 s, since which pages it loses otherwise depends on the load of the machine.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import statistics
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.readers import WarcReader
from datatrove.pipeline.writers import ParquetWriter

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GRISTMILL_SHARED", ROOT.parent / "shared")) / "data"
TARGET = 1.3
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
FILES = 8
SPACES = re.compile(r"\s+")
WORD = re.compile(r"\w+")


def gold() -> list[dict[str, Any]]:
    path = SHARED / "extraction" / "trafilatura" / "gold.jsonl"
    if not path.is_file():
        raise SystemExit(f"bench.extraction: no pages at {path}; set GRISTMILL_SHARED to the shared folder")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def reviewed() -> list[dict[str, Any]]:
    index = SHARED / "extraction" / "readability" / "index.jsonl"
    return [json.loads(line) for line in index.read_text(encoding="utf-8").splitlines()]


def pages() -> Iterator[tuple[str, bytes]]:
    """(url, bytes): the two evaluations' pages by their ids, then the sites' by their path."""
    for row in gold():
        yield (
            f"https://gold.example/{row['id']}",
            gzip.decompress((SHARED / "extraction/trafilatura" / row["html"]).read_bytes()),
        )
    folder = SHARED / "extraction" / "readability"
    for row in reviewed():
        yield f"https://reviewed.example/{row['id']}", gzip.decompress((folder / row["source"]).read_bytes())
    with tarfile.open(SHARED / "sites" / "debian_html.tar.xz") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                yield f"https://sites.example/{member.name}", content.read()


def write_archives(folder: Path) -> int:
    """The pages as FILES gzipped WARCs, dealt in turn. Returns how many."""
    outputs = [io.BytesIO() for _ in range(FILES)]
    count = 0
    for count, (url, body) in enumerate(pages(), 1):
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
        head = (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{count:032x}>\r\nWARC-Target-URI: {url}\r\n"
            "WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Identified-Payload-Type: text/html\r\n"
            f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        outputs[count % FILES].write(gzip.compress(head.encode() + block + b"\r\n\r\n", 6))
    for number, output in enumerate(outputs):
        (folder / f"{number}.warc.gz").write_bytes(output.getvalue())
    return count


class Ours:
    """This project's reader and step as a datatrove task over every second file."""

    def __init__(self, archives: str, out: str) -> None:
        self.archives, self.out = archives, out

    def __call__(self, data: Any, rank: int = 0, world_size: int = 1) -> list[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from ingest import Extract, Source, list_inputs, plan_units, read

        source = Source(name="crawl", format="warc", paths=(f"{self.archives}/*.warc.gz",))
        step = Extract()
        kept = []
        for unit in plan_units(source, list_inputs(source)[rank::world_size]):
            kept += [step(records.kept).kept for records in read(unit)]
        pq.write_table(pa.Table.from_batches(kept), f"{self.out}/{rank}.parquet")
        return []


def run(steps: list[Any], logs: Path) -> float:
    """Seconds of a pipeline with two tasks at two workers. The executor's own lines on stderr are left out."""
    shutil.rmtree(logs, ignore_errors=True)
    loud, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        start = time.perf_counter()
        LocalPipelineExecutor(steps, tasks=2, workers=2, logging_dir=str(logs)).run()
        return time.perf_counter() - start
    finally:
        os.dup2(loud, 2)
        os.close(loud)
        os.close(null)


def texts_in(out: Path) -> dict[str, str]:
    """{url: text} of what a side wrote."""
    import pyarrow.parquet as pq

    found = {}
    for path in sorted(out.glob("*.parquet")):
        for row in pq.read_table(path).to_pylist():
            found[row["url"] if "url" in row else row["metadata"]["url"]] = row["text"]
    return found


def score(texts: dict[str, str]) -> tuple[float, float, float]:
    """Precision, recall and F1 on the evaluation pages."""
    hits = misses = wrong = 0
    for row in gold():
        text = SPACES.sub(" ", texts.get(f"https://gold.example/{row['id']}", ""))
        found = [SPACES.sub(" ", segment) in text for segment in row["with"]]
        hits += sum(found)
        misses += len(found) - sum(found)
        wrong += sum(SPACES.sub(" ", segment) in text for segment in row["without"])
    precision, recall = hits / (hits + wrong), hits / (hits + misses)
    return precision, recall, 2 * precision * recall / (precision + recall)


def words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text))


def word_score(texts: dict[str, str]) -> float:
    """Mean F1 of words on Readability's reviewed pages."""
    import lxml.html

    folder = SHARED / "extraction" / "readability"
    scores = []
    for row in reviewed():
        expected = lxml.html.fromstring(gzip.decompress((folder / row["expected"]).read_bytes()).decode())
        right, found = words(expected.text_content()), words(texts.get(f"https://reviewed.example/{row['id']}", ""))
        scores.append(2 * (right & found).total() / max(right.total() + found.total(), 1))
    return statistics.mean(scores)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("archives", "ours", "theirs"):
            (folder / part).mkdir()
        count = write_archives(folder / "archives")
        our_steps: list[Any] = [Ours(str(folder / "archives"), str(folder / "ours"))]
        their_steps: list[Any] = [
            WarcReader(str(folder / "archives"), glob_pattern="*.warc.gz"),
            Trafilatura(timeout=20),
            ParquetWriter(str(folder / "theirs")),
        ]
        times = []
        for turn in range(ROUNDS + 1):
            pair = (run(our_steps, folder / "logs"), run(their_steps, folder / "logs"))
            if turn:
                times.append(pair)
        our_texts, their_texts = texts_in(folder / "ours"), texts_in(folder / "theirs")
    our_speed, their_speed = (count / statistics.median(side) for side in zip(*times, strict=True))
    our_score, their_score = score(our_texts), score(their_texts)
    print(f"{count} pages in {FILES} WARC files, 2 workers, median of {ROUNDS}")
    print(f"pages with text: ours {len(our_texts)}, datatrove {len(their_texts)}")
    print(
        f"bench extraction: ours {our_speed:.1f} documents/s, datatrove {their_speed:.1f}, "
        f"ratio {our_speed / their_speed:.2f} (target {TARGET})"
    )
    print(
        "bench extraction quality: ours P {:.3f} R {:.3f} F1 {:.4f}, ".format(*our_score)
        + "datatrove P {:.3f} R {:.3f} F1 {:.4f} (target: no lower)".format(*their_score)
    )
    print(
        f"bench extraction reviewed pages: ours F1 {word_score(our_texts):.4f}, "
        f"datatrove F1 {word_score(their_texts):.4f} (target: no lower)"
    )


if __name__ == "__main__":
    main()
