"""Tokenise, pack, plan, train.

Tokens                                  the recipe's `tokens:` section: documents to token shards
train_tokenizer(batches, vocab_size=)   a byte-level BPE Tokenizer trained on texts
load_tokenizer(path)                    a Tokenizer from any tokenizer.json
Tokenizer.encode(texts), .decode(ids)   text as text: never a control token
compile()                               build every kernel now, so that no worker does
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.tokenise.bpe import train_tokenizer
    from train.tokenise.compiled import compile
    from train.tokenise.tokenizer import Tokenizer, load_tokenizer
    from train.tokenise.tokens import Tokens

__all__ = ["Tokenizer", "Tokens", "compile", "load_tokenizer", "train_tokenizer"]

_HOMES = {
    "compile": "train.tokenise.compiled",
    "Tokenizer": "train.tokenise.tokenizer",
    "Tokens": "train.tokenise.tokens",
    "load_tokenizer": "train.tokenise.tokenizer",
    "train_tokenizer": "train.tokenise.bpe",
}


def __getattr__(name: str) -> Any:
    # numba and pydantic take a second to import, and `gristmill --help` needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module 'train' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
