"""sentencepiece's `.model` files, read without its library: a protocol buffer message, of which little decides ids."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# SOURCE: sentencepiece, sentencepiece_model.proto: kinds of pieces, algorithms, numbers of fields.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5


@dataclass(frozen=True, kw_only=True)
class Piece:
    text: str
    score: float
    kind: int


@dataclass(frozen=True, kw_only=True)
class SentenceModel:
    """What a `.model` file says that decides ids."""

    pieces: tuple[Piece, ...] = field(repr=False)
    algorithm: int = UNIGRAM
    byte_fallback: bool = False
    blank_behind: bool = False
    characters: bytes = field(default=b"", repr=False)
    blank_first: bool = True
    one_blank: bool = True
    escapes_blanks: bool = True

    def of_kind(self, *kinds: int) -> list[str]:
        return [piece.text for piece in self.pieces if piece.kind in kinds]


def read_model(data: bytes) -> SentenceModel:
    """Raises ValueError for what is no such file."""
    pieces: list[Piece] = []
    told: dict[str, Any] = {}
    for number, value in _fields(data):
        if number == 1:
            own = dict(_fields(_message(value)))
            score, kind = _message(own.get(2, bytes(4))), own.get(3, NORMAL)
            if (
                len(score) != 4
                or kind not in range(NORMAL, BYTE + 1)
                or not np.isfinite(np.frombuffer(score, "<f4")[0])
            ):
                raise ValueError("a piece without a score or a kind that is known")
            pieces.append(
                Piece(text=_message(own.get(1, b"")).decode(), score=struct.unpack("<f", score)[0], kind=kind)
            )
        elif number == 2:
            own = dict(_fields(_message(value)))
            told |= {
                "algorithm": own.get(3, UNIGRAM),
                "byte_fallback": bool(own.get(35, False)),
                "blank_behind": bool(own.get(24, False)),
            }
        elif number == 3:
            own = dict(_fields(_message(value)))
            told |= {
                "characters": _message(own.get(2, b"")),
                "blank_first": bool(own.get(3, True)),
                "one_blank": bool(own.get(4, True)),
                "escapes_blanks": bool(own.get(5, True)),
            }
    if not any(piece.kind == UNKNOWN for piece in pieces):
        raise ValueError("no piece for what is unknown")
    return SentenceModel(pieces=tuple(pieces), **told)


def _message(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where a message belongs")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(field number, value) of a protocol buffer message; what is fixed in width stays bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == BYTES:
            size, at = _varint(data, at)
        else:
            size = {FIXED_64: 8, FIXED_32: 4}.get(wire, -1)
        if size < 0 or at + size > len(data) or number == 0:
            raise ValueError("not a protocol buffer message")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("not a protocol buffer message")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
