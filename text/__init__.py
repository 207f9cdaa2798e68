"""Compiled text kernels shared by many steps: words, lines, n-gram hashes. Depends on nothing here.

tokenize(texts) -> Tokens            one pass over the UTF-8 buffer of a whole batch
ngram_hashes(hashes, offsets, n)     hashes of the n-grams of each text
normalised_hash(texts)               128-bit hash of each text, white space collapsed
tokens_of(batch), attach(batch, t)   tokens that travel between fused steps as transient columns
buffers_of(texts)                    the UTF-8 bytes and int64 offsets of an Arrow array, without a copy
kernel, inlined                      how a room compiles loops of its own over these arrays
compile()                            build every kernel now, so that no worker does
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from text.buffers import buffers_of
    from text.compiled import compile
    from text.jit import inlined, kernel
    from text.ngrams import ngram_hashes
    from text.normalised import normalised_hash
    from text.transient import attach, tokens_of
    from text.words import Tokens, tokenize

__all__ = [
    "Tokens",
    "attach",
    "buffers_of",
    "compile",
    "inlined",
    "kernel",
    "ngram_hashes",
    "normalised_hash",
    "tokenize",
    "tokens_of",
]

_HOMES = {
    "Tokens": "text.words",
    "attach": "text.transient",
    "buffers_of": "text.buffers",
    "compile": "text.compiled",
    "inlined": "text.jit",
    "kernel": "text.jit",
    "ngram_hashes": "text.ngrams",
    "normalised_hash": "text.normalised",
    "tokenize": "text.words",
    "tokens_of": "text.transient",
}


def __getattr__(name: str) -> Any:
    # numba takes a second to import, and `gristmill --help` needs none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'text' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
