"""Takes e-mail and IP addresses out of texts.

Covered: e-mail addresses as people write them, plus addresses and apostrophes, domains in Unicode or punycode, in any
alphabet that is written with spaces; public IPv4 and IPv6 addresses, ranges, and those with a port, prefix or zone.

Not covered: quoted local parts ("john doe"@x.org), domain literals (a@[192.0.2.1]), names in Han, kana or Thai,
addresses that people disguise (a at x dot org), hosts outside the DNS root but for .local, .lan and their like,
git@host:path (a repository); IPv4 beside letters, digits, `_` or `-`, after a word such as version or section, or as
the number of a heading; shortened IPv6 addresses outside 2000::/3 (a::b is more often a class); addresses for special
use: private, loopback, documentation, multicast (RFC 6890). Names, telephone and card numbers are no part of this step.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass

from shards.step import Judged, judge, with_column
from text import buffers_of

KINDS = ("email", "ip_address")
"""Kinds of spans, by the kernels' number."""

SIGNALS = pa.schema([("emails", pa.int32()), ("ip_addresses", pa.int32())])

SPANS = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("kind", pa.string())]))

_NUMBERED = """
appendix article build chapter clause driver fig figure firmware item kernel paragraph patch rel release releases rev
revision rfc sec section sections step table update v ver version versions
"""


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Redact:
    """Replaces e-mail and public IP addresses in `text` by placeholders, the same ones everywhere. Drops nothing.

    kinds: what to replace: email, ip_address.
    placeholder_email, placeholder_ip: what to put there. The defaults are StarCoder's (arXiv:2305.06161, section 4),
        which a tokenizer can take as special tokens; FineWeb writes email@example.com instead. With the defaults a
        second run changes nothing.

    Signals: emails and ip_addresses, how many were replaced.
    """

    name: ClassVar[str] = "redact"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"text"})
    adds: ClassVar[pa.Schema] = pa.schema([])
    signals: ClassVar[pa.Schema] = SIGNALS
    libraries: ClassVar[tuple[str, ...]] = ()

    kinds: Annotated[tuple[Literal["email", "ip_address"], ...], BeforeValidator(_one_or_more)] = (
        "email",
        "ip_address",
    )
    placeholder_email: str = Field(default="<EMAIL>", max_length=64)
    placeholder_ip: str = Field(default="<IP_ADDRESS>", max_length=64)

    def __call__(self, batch: pa.RecordBatch) -> Judged:
        column = batch.column("text")
        found = self.find(column)
        counts = [np.bincount(found.texts[found.kinds == kind], minlength=len(column)) for kind in range(len(KINDS))]
        signals = pa.RecordBatch.from_arrays([pa.array(each.astype(np.int32)) for each in counts], schema=SIGNALS)
        if len(found.texts):  # else the text stays, and with it what was measured on it
            batch = with_column(batch, "text", self.replace(column, found))
        return judge(batch, (), signals=signals)

    def find(self, texts: Any) -> Spans:
        """The spans to replace, in bytes."""
        from filters.redact_kernels import find

        data, offsets = buffers_of(texts)
        return Spans(*find(data, offsets, *_tables(), "email" in self.kinds, "ip_address" in self.kinds))

    def replace(self, texts: Any, spans: Spans) -> pa.Array:
        """The texts with placeholders in place of the spans: large_string, null where a text is null."""
        from filters.redact_kernels import replace

        marks = [np.frombuffer(mark.encode(), np.uint8) for mark in (self.placeholder_email, self.placeholder_ip)]
        data, offsets = replace(*buffers_of(texts), *spans, *marks)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        array = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)
        return _with_nulls_of(texts, array)


class Spans(NamedTuple):
    """m spans, in order, none over another: text int64[m], byte offsets start and end int64[m] into the data of the
    whole batch, kind uint8[m], a place in KINDS."""

    texts: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.uint8]


def redact(texts: Any, **settings: Any) -> pa.Table:
    """Table(text large_string, spans list<struct<start, end, kind>>), a row a text, in code points of the original.

    texts: a list of str or an Arrow array. settings: those of Redact. kind is email or ip_address.
    """
    from filters.redact_kernels import characters

    step = Redact(**settings)
    found = step.find(texts)
    data, offsets = buffers_of(texts)
    first, last = characters(data, offsets, *found[:3])
    kinds = pa.array(KINDS).take(pa.array(found.kinds))
    struct = pa.StructArray.from_arrays([pa.array(first), pa.array(last), kinds], names=["start", "end", "kind"])
    counts = np.bincount(found.texts, minlength=len(offsets) - 1)
    places = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    return pa.table({"text": step.replace(texts, found), "spans": pa.ListArray.from_arrays(places, struct).cast(SPANS)})


def compile() -> None:
    """Build the kernels now, or load them from numba's cache, so that no worker does."""
    redact(["one@mail.example at 8.8.8.8 and 2001:4860:4860::8888", ""])


@cache
def _tables() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """(sorted hashes of the top-level domains, sorted hashes of the words before a number that is no address)."""
    tlds = Path(__file__).with_name("redact_tlds.txt").read_bytes().split()
    return _hashes(tlds), _hashes([word[::-1].encode() for word in _NUMBERED.split()])


def _hashes(words: list[bytes]) -> npt.NDArray[np.uint64]:
    from filters.url_words import word_hash

    return np.array(sorted(int(word_hash(np.frombuffer(word, np.uint8), 0, len(word))) for word in words), np.uint64)


def _with_nulls_of(texts: Any, array: pa.Array) -> pa.Array:
    if not isinstance(texts, pa.Array | pa.ChunkedArray) or texts.null_count == 0:
        return array
    import pyarrow.compute as pc

    valid = texts.is_valid()
    return pc.if_else(valid.combine_chunks() if isinstance(valid, pa.ChunkedArray) else valid, array, None)
