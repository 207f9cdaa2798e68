"""Tokenise, pack, plan, train. Front door: names are imported when first used, so that importing the room is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.bpe import train_tokenizer
    from train.tokenizer import Tokenizer, load_tokenizer
    from train.tokens import Tokens

__all__ = ["Tokenizer", "Tokens", "load_tokenizer", "train_tokenizer"]

_HOMES = {
    "Tokenizer": "train.tokenizer",
    "Tokens": "train.tokens",
    "load_tokenizer": "train.tokenizer",
    "train_tokenizer": "train.bpe",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'train' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
