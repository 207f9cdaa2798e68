"""Tokenizers side by side on the same texts: what a token holds, by domain and language.

A loss per token says nothing between tokenizers; these numbers say what to multiply it with.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shards.store import exists, join
from shards.views import run_of
from text import tokenize
from train.tokenise.encode import BATCH_BYTES, bounded
from train.tokenise.sampling import Group, Keys, Sampled, documents_of, sampled
from train.tokenise.tokenizer import Tokenizer, load_tokenizer

COMPARED = pa.schema(
    [
        ("tokenizer", pa.string()),
        ("domain", pa.string()),
        ("language", pa.string()),
        ("vocabulary", pa.int64()),
        ("documents", pa.int64()),
        ("bytes", pa.int64()),
        ("characters", pa.int64()),
        ("words", pa.int64()),
        ("tokens", pa.int64()),
        ("bytes_per_token", pa.float64()),
        ("tokens_per_byte", pa.float64()),
        ("characters_per_token", pa.float64()),
        ("fertility", pa.float64()),
        ("vocabulary_used", pa.float64()),
        ("unknown_tokens", pa.int64()),
        ("fallback_share", pa.float64()),
        ("parity", pa.float64()),
    ]
)
BYTE_NAME = re.compile(r"<0x[0-9A-F]{2}>")
Texts: TypeAlias = "str | pa.Table | Iterable[pa.RecordBatch]"


def compare(
    tokenizers: Mapping[str, str | Tokenizer],
    texts: Texts,
    *,
    sample_bytes: int = 1 << 20,
    seed: int = 0,
    reference_language: str | None = None,
    parallel: str | None = None,
) -> pa.Table:
    """A row a tokenizer, domain and language, as COMPARED; domain or language null stands for all of them.

    tokenizers: {name: a file, as load_tokenizer reads it, or a Tokenizer}. texts: the output of a run, or Arrow with
    `text` and, where known, `id`, `domain` and `language`. sample_bytes: of each domain and language (see sampled).

    words are text.tokenize's that hold a letter or digit: in scripts without spaces each character. fertility: tokens a
    word. vocabulary_used: share of the entries that occur. fallback_share: share of tokens that are one byte of a
    character, or a byte by name. parity: tokens over those of the same texts in reference_language (Petrov et al.
    2305.15425), for texts whose `parallel` column has one value, or null. BOS and EOS are not counted. Ratios without a
    denominator are null. Raises TokenizerError for a file that cannot be used, ValueError for texts that cannot.
    """
    if (reference_language is None) != (parallel is None):
        raise ValueError("reference_language and parallel: parity needs both; give both or neither")
    groups = sampled(_batches(texts), sample_bytes=sample_bytes, seed=seed, parallel=parallel)
    measured = {group: _of_texts(sample) for group, sample in groups.items()}
    rows: list[dict[str, Any]] = []
    for name, told in tokenizers.items():
        tokenizer = load_tokenizer(told) if isinstance(told, str) else told
        rows += _rows(name, tokenizer, groups, measured, reference_language)
    return pa.Table.from_pylist(rows, COMPARED)


def named(paths: Sequence[str], out: str | None = None) -> dict[str, str]:
    """{name: path} for `compare`: names of files, with as much of their folders as tells them apart.

    The tokenizer of the run `out`, where it made one, stands first under the name of its step's folder.
    """
    found: dict[str, str] = {}
    for step in run_of(out)["steps"] if out is not None else ():
        path = join(out or "", step["folder"], "tokenizer.json")
        if step["kind"] == "tokens" and exists(path):
            found[step["folder"]] = path
    parts = [path.replace("\\", "/").rstrip("/").split("/") for path in paths]
    taken = 1
    while taken < max(map(len, parts), default=0) and len({tuple(one[-taken:]) for one in parts}) < len(parts):
        taken += 1
    for path, one in zip(paths, parts, strict=True):
        name = re.sub(r"\.(json|model|tiktoken)$", "", "/".join(one[-taken:]))
        found[path if name in found else name] = path
    return found


def as_json(table: pa.Table) -> dict[str, Any]:
    """The table as lists of plain values: {"rows": [...]}, with what the columns hold in COMPARED's order."""
    return {"rows": table.to_pylist()}


def _batches(texts: Texts) -> Iterator[pa.RecordBatch]:
    if isinstance(texts, str):
        return documents_of(texts)
    return iter(texts.to_batches(max_chunksize=1024)) if isinstance(texts, pa.Table) else iter(texts)


def _of_texts(sample: Sampled) -> Counter[str]:
    """What does not depend on a tokenizer."""
    told: Counter[str] = Counter()
    for piece in _pieces(sample):
        read = tokenize(piece)
        words = read.words_only()[1][-1]
        told.update(documents=len(piece), bytes=len(read.data), characters=int(read.characters.sum()), words=int(words))
    return told


def _pieces(sample: Sampled) -> Iterator[pa.Array]:
    batch = pa.record_batch([sample.texts], names=["text"])
    return (piece.column("text") for piece in bounded(batch, BATCH_BYTES))


@dataclass
class _Count:
    """What one tokenizer makes of some texts."""

    used: npt.NDArray[np.bool_] = field(repr=False)
    tokens: int = 0
    unknown: int = 0
    fallback: int = 0
    own: int = 0  # tokens of texts that the reference language has, too
    reference: int = 0  # what they are there

    def add(self, other: _Count) -> None:
        self.used |= other.used
        for name in ("tokens", "unknown", "fallback", "own", "reference"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _rows(
    name: str,
    tokenizer: Tokenizer,
    groups: Mapping[Group, Sampled],
    measured: Mapping[Group, Counter[str]],
    reference: str | None,
) -> Iterator[dict[str, Any]]:
    counter = _Counter(tokenizer)
    counts: dict[Group, _Count] = {}
    pairs: dict[Group, tuple[Keys, npt.NDArray[np.int64]]] = {}
    for group, sample in groups.items():
        counts[group], pairs[group] = counter(sample)
    if reference is not None:
        for (domain, language), count in counts.items():
            told = pairs.get((domain, reference))
            if told is not None:
                count.own, count.reference = _shared(pairs[domain, language], told)
    views: dict[tuple[str | None, str | None], list[Group]] = {}
    for group in groups:
        domain, language = group
        views.setdefault((domain, language), []).append(group)
        views.setdefault((domain, None), []).append(group)
        views.setdefault((None, language), []).append(group)
        views.setdefault((None, None), []).append(group)
    for view in sorted(views, key=lambda view: tuple((part is None, part or "") for part in view)):
        count, texts = _Count(np.zeros(tokenizer.vocab_size, np.bool_)), Counter[str]()
        for group in views[view]:
            count.add(counts[group])
            texts.update(measured[group])
        yield {"tokenizer": name, "domain": view[0], "language": view[1], **_row(count, texts, counter.entries)}


def _row(count: _Count, texts: Counter[str], entries: int) -> dict[str, Any]:
    return {
        "vocabulary": entries,
        **{key: texts[key] for key in ("documents", "bytes", "characters", "words")},
        "tokens": count.tokens,
        "bytes_per_token": _ratio(texts["bytes"], count.tokens),
        "tokens_per_byte": _ratio(count.tokens, texts["bytes"]),
        "characters_per_token": _ratio(texts["characters"], count.tokens),
        "fertility": _ratio(count.tokens, texts["words"]),
        "vocabulary_used": _ratio(int(count.used.sum()), entries),
        "unknown_tokens": count.unknown,
        "fallback_share": _ratio(count.fallback, count.tokens),
        "parity": _ratio(count.own, count.reference),
    }


def _ratio(above: int, below: int) -> float | None:
    return above / below if below else None


class _Counter:
    """Encodes samples with one tokenizer and counts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        vocabulary = tokenizer.library.get_vocab(with_added_tokens=True)
        self.entries = len(vocabulary)
        model = json.loads(tokenizer.json)["model"]
        unknown = model.get("unk_id")
        self.unknown = vocabulary.get(model.get("unk_token"), -1) if unknown is None else unknown
        byte_level = '"ByteLevel"' in tokenizer.json
        by_name = bool(model.get("byte_fallback"))
        self.is_byte = np.zeros(tokenizer.vocab_size, np.bool_)
        for text, number in vocabulary.items():
            part = byte_level and len(text) == 1 and _byte(text) >= 0x80
            self.is_byte[number] = part or (by_name and BYTE_NAME.fullmatch(text) is not None)

    def __call__(self, sample: Sampled) -> tuple[_Count, tuple[Keys, npt.NDArray[np.int64]]]:
        """The counts, and of each pair its tokens."""
        found = _Count(np.zeros(self.tokenizer.vocab_size, np.bool_))
        lengths = [np.zeros(0, np.int64)]
        for piece in _pieces(sample):
            ids, offsets = self.tokenizer.encode(piece)
            found.used[ids] = True
            found.tokens += len(ids)
            found.unknown += int((ids == self.unknown).sum()) if self.unknown >= 0 else 0
            found.fallback += int(self.is_byte[ids].sum())
            lengths.append(np.diff(offsets))
        if sample.pairs is None:
            return found, (np.zeros(0, np.uint64), np.zeros(0, np.int64))
        pairs, at = np.unique(sample.pairs, return_inverse=True)
        tokens = np.zeros(len(pairs), np.int64)
        np.add.at(tokens, at, np.concatenate(lengths))
        return found, (pairs, tokens)


def _byte(letter: str) -> int:
    """The byte that a letter of the byte-level alphabet prints; 0 for those below 0x80 that are not printable."""
    code = ord(letter)
    if code < 0x100:
        return code
    # From U+0100 on stand the 68 others in order: 0-32, 127-160, 173.
    others = [*range(0x21), *range(0x7F, 0xA1), 0xAD]
    return others[code - 0x100] if code - 0x100 < len(others) else 0


def _shared(one: tuple[Keys, npt.NDArray[np.int64]], other: tuple[Keys, npt.NDArray[np.int64]]) -> tuple[int, int]:
    _, at, there = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    return int(one[1][at].sum()), int(other[1][there].sum())
