"""How many bytes of text each token stands for: what makes losses of different tokenizers comparable.

A token's bytes add up to its text's: those of a byte-level vocabulary are counted in its own alphabet (a character a
byte), so that tokens which are parts of a character count right; `<0x0A>` is one byte; the sign for a space is a space.
Control tokens (EOS, BOS) stand for no text and have 0 bytes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.tokenise.tokenizer import Tokenizer

SPACE = "\u2581"
BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")


def token_bytes(tokenizer: Tokenizer) -> NDArray[np.int64]:
    """int64[vocab_size]: UTF-8 bytes by token id; 0 for control tokens and for ids that nothing has."""
    found = np.zeros(tokenizer.vocab_size, np.int64)
    decoder = _kinds(json.loads(tokenizer.json).get("decoder"))
    for token, number in tokenizer.library.get_vocab(with_added_tokens=False).items():
        found[number] = _bytes(token, decoder)
    for number, token in tokenizer.library.get_added_tokens_decoder().items():
        found[number] = 0 if token.special or token.content in tokenizer.controls else len(token.content.encode())
    return found


def _bytes(token: str, decoder: set[str]) -> int:
    if "ByteLevel" in decoder:
        return len(token)
    if "ByteFallback" in decoder and BYTE.fullmatch(token):
        return 1
    if "WordPiece" in decoder:
        token = token.removeprefix("##") if token.startswith("##") else f" {token}"
    return len(token.replace(SPACE, " ").encode())


def _kinds(decoder: Any) -> set[str]:
    """The types of a decoder and of those that it is a sequence of."""
    if not decoder:
        return set()
    return {decoder["type"]}.union(*(_kinds(part) for part in decoder.get("decoders", ())))
