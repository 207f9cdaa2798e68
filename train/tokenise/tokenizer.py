"""A tokenizer as this project uses it: loaded from a file or trained (train.tokenise.bpe), applied to text only.

Encoding turns text into ids and nothing else. Special tokens are never added by the tokenizer's own post-processor (the
policy of the token shards adds them, and says so), and never recognised in a document's text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from shards.store import filesystem
from text import buffers_of
from train.tokenise.pieces import MARKS, OWN, Ids, Offsets, PieceEncoder

if TYPE_CHECKING:
    from train.tokenise.cutting import Cutting

GROUP_CHARS = 1 << 20  # the library keeps some 200 bytes a token until a call returns: this bounds a call
WINDOW_CHARS = 1 << 18
REACH_CHARS = 256  # more than the pattern's longest piece and what it looks ahead
PARALLELISM = "TOKENIZERS_PARALLELISM"


class TokenizerError(ValueError):
    """A tokenizer that cannot be used as asked: one line that says which and what to do."""


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer that reads text as text.

    json: its tokenizer.json, without truncation, padding or dropout, all of which would change documents in silence.
    controls: names of further tokens that no text may become, whatever the file says of them.
    """

    json: str
    controls: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        """xxh3-128 of the canonical JSON (sorted keys, no white space): equal for files of equal content."""
        told = json.dumps(json.loads(self.json), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return xxhash.xxh3_128_hexdigest(told.encode())

    @cached_property
    def library(self) -> Any:
        """The `tokenizers.Tokenizer`. That it reads special tokens as text is not in its JSON: set at each load."""
        opened = tokenizers_library().Tokenizer.from_str(self.json)
        opened.encode_special_tokens = True
        return opened

    @cached_property
    def vocab_size(self) -> int:
        """Largest id + 1: what an embedding table needs, also where a vocabulary has holes."""
        return max(self.library.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def id_of(self, token: str) -> int:
        """The id of a special token. Raises TokenizerError when the vocabulary lacks it."""
        found = self.library.token_to_id(token)
        if found is None:
            known = ", ".join(sorted(self._special)[:12]) or "none"
            raise TokenizerError(
                f"tokens: the tokenizer has no token {token!r}; set eos_token, bos_token to its own (special tokens: "
                f"{known}), or append_eos, prepend_bos to false"
            )
        return int(found)

    def encode(self, texts: pa.Array | pa.ChunkedArray | Sequence[str]) -> tuple[Ids, Offsets]:
        """(ids uint32, offsets int64[n + 1]): text i is ids[offsets[i]:offsets[i + 1]]; a null text is empty.

        The answer is the library's own; where texts may be cut (train.tokenise.cutting), it comes several times faster.
        Raises TokenizerError for what is no text, or cannot be encoded without a control token.
        """
        if isinstance(texts, str):
            raise TokenizerError("texts: one string; give a list of texts")
        try:
            if self._cutting is not None:
                return self._pieces(*buffers_of(self._cutting.prepared(texts)))
            told = texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else texts
            return self.encode_strings([text or "" for text in told])
        except (UnicodeError, TypeError) as error:
            said = "no text, a lone surrogate or bytes that are no UTF-8; give strings, decoded with errors='replace'"
            raise TokenizerError(f"texts: {said}") from error

    def encode_strings(self, texts: list[str]) -> tuple[Ids, Offsets]:
        """The same by the library alone, on this thread, in calls of bounded size.

        The library reads the names of special tokens as text when asked to, but a vocabulary may hold such a name as
        an ordinary entry too. A text that still became a control token is encoded again, cut inside each name.
        """
        found = self._encode_bounded(texts)
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(ids) for ids in found], out=offsets[1:])
        ids = np.concatenate([np.zeros(0, np.uint32), *found])
        if not self._is_control[ids].any():
            return ids, offsets
        for row, own in enumerate(found):
            if self._is_control[own].any():
                found[row] = self._encode_cut(texts[row])
        np.cumsum([len(own) for own in found], out=offsets[1:])
        return np.concatenate(found), offsets

    def decode(self, ids: Sequence[int] | Ids) -> str:
        """The text of ids; special tokens appear by name."""
        told: str = self.library.decode([int(number) for number in ids], skip_special_tokens=False)
        return told

    @cached_property
    def _special(self) -> dict[str, int]:
        added = self.library.get_added_tokens_decoder()
        return {token.content: number for number, token in added.items() if token.special}

    @cached_property
    def _control(self) -> dict[str, int]:
        """Special tokens, but the one that stands for unknown characters, which texts may become."""
        unknown = getattr(self.library.model, "unk_token", None)
        told = {token: number for token, number in self._special.items() if token != unknown}
        return told | {token: self.id_of(token) for token in self.controls}

    @cached_property
    def _is_control(self) -> npt.NDArray[np.bool_]:
        marks = np.zeros(self.vocab_size, np.bool_)
        marks[list(self._control.values())] = True
        return marks

    def _encode_cut(self, text: str) -> Ids:
        """Normalised as a whole first: a normaliser may put something before each text that it is given."""
        bare = self
        if self.library.normalizer is not None:
            text = self.library.normalizer.normalize_str(text)
            bare = Tokenizer(json.dumps({**json.loads(self.json), "normalizer": None}), self.controls)
        names = sorted(self._control, key=len, reverse=True)
        cuts = [match.start() + 1 for match in re.finditer("|".join(map(re.escape, names)), text)]
        parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        ids = np.concatenate(bare._encode_bounded(parts))
        if self._is_control[ids].any():
            raise TokenizerError("the tokenizer makes control tokens of ordinary text, so it cannot be used")
        return ids

    def _encode_bounded(self, texts: list[str]) -> list[Ids]:
        """The ids of each text, long ones in windows where the pattern is known: the call's memory is bounded."""
        if not self._cuttable or max(map(len, texts), default=0) <= WINDOW_CHARS:
            return self._encode_groups(texts)
        found = []
        for text in texts:
            found.append(np.concatenate(self._encode_groups(list(self._windows(text)))))
        return found

    def _encode_groups(self, texts: list[str]) -> list[Ids]:
        found: list[Ids] = []
        with one_thread():
            for group in _groups(texts):
                told = self.library.encode_batch_fast(group, add_special_tokens=False)
                found += [np.array(encoding.ids, np.uint32) for encoding in told]
        return found

    def _windows(self, text: str) -> Iterator[str]:
        """Parts of a text that encode as the whole does: cut at pieces that nothing behind the window can change."""
        start = 0
        while len(text) - start > WINDOW_CHARS:
            window = text[start : start + WINDOW_CHARS]
            ends = (end for _, (_, end) in reversed(_split().pre_tokenize_str(window)))
            stop = next(end for end in ends if end <= WINDOW_CHARS - REACH_CHARS)
            yield window[:stop]
            start += stop
        yield text[start:]

    @cached_property
    def _pieces(self) -> PieceEncoder:
        assert self._cutting is not None
        encoder = self
        if self._cutting.rule == MARKS:  # what the normaliser does was done
            encoder = Tokenizer(json.dumps({**json.loads(self.json), "normalizer": None}), self.controls)
        return PieceEncoder(encoder.encode_strings, rule=self._cutting.rule)

    @cached_property
    def _cutting(self) -> Cutting | None:
        from train.tokenise.cutting import cutting_of

        return cutting_of(self.json)

    @cached_property
    def _cuttable(self) -> bool:
        """Whether this tokenizer splits text by train.tokenise.bpe.PATTERN and does nothing else to it."""
        return self._cutting is not None and self._cutting.rule == OWN


def load_tokenizer(
    path: str,
    controls: tuple[str, ...] = (),
    *,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | Sequence[str] = (),
) -> Tokenizer:
    """Read a tokenizer.json, a sentencepiece model (unigram or BPE) or a tiktoken file from a path or any fsspec URL.

    controls: names of its tokens that no text may become, beyond those that it calls special.
    pattern, special_tokens: what a tiktoken file does not tell, needed where its name is not one that tiktoken knows:
        the regular expression as tiktoken takes it; {name: id}, or names that get the ids behind all others.
    Raises TokenizerError for what is none of these, or cannot be used exactly.
    """
    from train.tokenise.foreign import converted

    library, data = tokenizers_library(), read_bytes(path)
    try:
        opened = converted(data, path, controls=controls, pattern=pattern, special_tokens=special_tokens)
    except ValueError as error:
        raise TokenizerError(f"{path}: {error}") from error
    if opened is None:
        if pattern is not None or isinstance(special_tokens, Mapping):
            raise TokenizerError(f"{path}: no tiktoken file, and only such a one needs a pattern and ids")
        try:
            opened = library.Tokenizer.from_str(data.decode())
        except Exception as error:  # the library has no error class of its own
            said = "not a tokenizer.json that the library tokenizers can load, nor a model of sentencepiece or tiktoken"
            raise TokenizerError(f"{path}: {said}: {error}") from error
    opened.no_truncation()
    opened.no_padding()
    if getattr(opened.model, "dropout", None):
        opened.model.dropout = None
    return Tokenizer(opened.to_str(pretty=True), controls)


def read_bytes(path: str) -> bytes:
    """The bytes of a tokenizer's file. Raises TokenizerError where there is none to read."""
    files, name = filesystem(path)
    try:
        data: bytes = files.cat_file(name)
    except IsADirectoryError:
        raise TokenizerError(
            f"{path}: is a folder; name the file in it, as {path.rstrip('/')}/tokenizer.json"
        ) from None
    except FileNotFoundError:
        raise TokenizerError(
            f"{path}: no such file; name a tokenizer.json, a sentencepiece .model or a .tiktoken file"
        ) from None
    return data


@contextmanager
def one_thread() -> Iterator[None]:
    """The library on this thread alone: an engine has a worker a core, and threads do not survive a fork."""
    before = os.environ.get(PARALLELISM)
    os.environ[PARALLELISM] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[PARALLELISM]
        else:
            os.environ[PARALLELISM] = before


def tokenizers_library() -> Any:
    try:
        import tokenizers
    except ModuleNotFoundError as error:
        raise TokenizerError("tokens needs the library tokenizers: pip install 'gristmill[train]'") from error
    return tokenizers


def _split() -> Any:
    from train.tokenise.bpe import split

    return split()


def _groups(texts: list[str]) -> Iterator[list[str]]:
    """Runs of texts of at most GROUP_CHARS together; a longer text is a group of its own."""
    group: list[str] = []
    size = 0
    for text in texts:
        if group and size + len(text) > GROUP_CHARS:
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group
