"""Tokenizer files of other libraries, told apart by what they hold, not by their names."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from train.tokenise.ranks import from_ranks, is_ranks, read_ranks
from train.tokenise.sentence_model import read_model
from train.tokenise.sentence_pieces import from_model


def converted(
    data: bytes,
    path: str,
    *,
    controls: tuple[str, ...] = (),
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | Sequence[str] = (),
) -> Any:
    """The `tokenizers.Tokenizer` of a tiktoken file or a sentencepiece model; None when the data is neither.

    path: its name tells which of the published tiktoken files it is. Raises ValueError for a file that is damaged, or
    does what the library cannot.
    """
    if is_ranks(data):
        name = posixpath.basename(path.replace("\\", "/")).removesuffix(".tiktoken")
        return from_ranks(read_ranks(data), name=name, pattern=pattern, special_tokens=special_tokens)
    if data[:1] != b"\n":  # the first field of the first piece: a message
        return None
    if pattern is not None or isinstance(special_tokens, Mapping):
        raise ValueError("a sentencepiece model holds its own pattern and ids; leave pattern and ids out")
    model = read_model(data)
    try:
        return from_model(model, controls)
    except ValueError:
        raise
    except Exception as error:  # the library has no error class of its own
        raise ValueError(f"the library tokenizers cannot hold it: {error}") from error
