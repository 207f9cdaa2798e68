"""Which texts may be cut before they are encoded: what train.tokenise.pieces needs to know of a loaded tokenizer.

OWN     the pre-tokenizer that is trained here (train.tokenise.bpe)
WORDS   patterns of published byte-level tokenizers, in which nothing but white space stands before white space of the
        same piece, save for line ends behind symbols
MARKS   sentencepiece's way: U+2581 for a space, and no entry of the vocabulary with one behind another character

A tokenizer that is none of these is left to the library, a text as a whole.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from train.tokenise.bpe import PATTERN
from train.tokenise.pieces import MARKS, OWN, WORDS
from train.tokenise.ranks import CL100K, GPT_2, O200K
from train.tokenise.sentence_pieces import BLANK, BLANK_INSIDE, SPLITS_WORDS

CONTRACTIONS = r"'s|'t|'re|'ve|'m|'ll|'d"
BYTE_LEVEL = rf"{CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"  # the library's own
_LETTERS, _ENDS = r"|[^\r\n\p{L}\p{N}]?\p{L}+", r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# SOURCE: tokenizer.json of GPT-2, Llama 3, Qwen 2.5 and their kin; those of tiktoken as train.tokenise.ranks has them.
PUBLISHED = frozenset(
    {
        GPT_2,
        CL100K,
        O200K,
        BYTE_LEVEL,
        rf"(?i:{CONTRACTIONS}){_LETTERS}|\p{{N}}{{1,3}}{_ENDS}",
        rf"(?i:{CONTRACTIONS}){_LETTERS}|\p{{N}}{_ENDS}",
    }
)


@dataclass(frozen=True, kw_only=True)
class Cutting:
    """rule: of train.tokenise.pieces. first: what the normaliser puts before each text that is not empty."""

    rule: int
    first: str = ""

    def prepared(self, texts: Any) -> Any:
        """The texts as the pre-tokenizer sees them."""
        if self.rule != MARKS:
            return texts
        array = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
        array = array if isinstance(array, pa.Array) else pa.array(array, pa.large_string())
        array = pc.replace_substring(array.cast(pa.large_string()).fill_null(""), " ", BLANK)
        if not self.first:
            return array
        first, nothing = (pa.scalar(text, pa.large_string()) for text in (self.first, ""))
        return pc.if_else(pc.equal(array, nothing), array, pc.binary_join_element_wise(first, array, nothing))


def cutting_of(told: str) -> Cutting | None:
    """How texts may be cut for this tokenizer.json, without a change of what the library answers."""
    tree = json.loads(told)
    added = tree["added_tokens"]
    # Other added tokens are found in the text before it is split, and may take white space around them with them.
    if not all(token["special"] or _solid(token) for token in added):
        return None
    kinds = _parts(tree["pre_tokenizer"])
    normalizers = _parts(tree["normalizer"])
    if tree["model"]["type"] == "BPE" and kinds and _is_bytes(kinds[-1]):
        pattern = _pattern(kinds)
        if pattern == PATTERN and not normalizers and all(token["special"] for token in added):
            return Cutting(rule=OWN)
        if pattern in PUBLISHED and all(part["type"] == "NFC" for part in normalizers):
            return Cutting(rule=WORDS)
        return None
    return _marks(tree, kinds, normalizers)


def _marks(tree: dict[str, Any], kinds: list[dict[str, Any]], normalizers: list[dict[str, Any]]) -> Cutting | None:
    first = ""
    if normalizers and normalizers[0] == {"type": "Prepend", "prepend": BLANK}:
        first, normalizers = BLANK, normalizers[1:]
    if normalizers != [{"type": "Replace", "pattern": {"String": " "}, "content": BLANK}]:
        return None
    model = tree["model"]
    if model["type"] not in ("BPE", "Unigram") or (kinds and SPLITS_WORDS not in [_regex(part) for part in kinds]):
        return None
    if not kinds and model["type"] == "Unigram":
        return None  # the path of a whole text may differ from those of its words where paths are equally good
    texts = model["vocab"] if model["type"] == "BPE" else [text for text, _ in model["vocab"]]
    inside = re.compile(BLANK_INSIDE)
    names = {token["content"] for token in tree["added_tokens"] if token["special"]}
    if BLANK not in texts or any(inside.search(text) for text in texts if text not in names):
        return None
    return Cutting(rule=MARKS, first=first)


def _parts(told: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The members of a Sequence, one by one."""
    if told is None:
        return []
    for key in ("pretokenizers", "normalizers"):
        if told["type"] == "Sequence" and key in told:
            return [part for member in told[key] for part in _parts(member)]
    return [told]


def _solid(token: dict[str, Any]) -> bool:
    return not (token["lstrip"] or token["rstrip"] or token["single_word"] or re.search(r"\s|\u2581", token["content"]))


def _is_bytes(part: dict[str, Any]) -> bool:
    return part["type"] == "ByteLevel" and not part["add_prefix_space"]


def _pattern(kinds: list[dict[str, Any]]) -> str | None:
    if len(kinds) == 1:
        return BYTE_LEVEL if kinds[0]["use_regex"] else None
    return _regex(kinds[0]) if len(kinds) == 2 and not kinds[1]["use_regex"] else None


def _regex(part: dict[str, Any]) -> str | None:
    if part["type"] != "Split" or part["behavior"] != "Isolated" or part["invert"]:
        return None
    found: str | None = part["pattern"].get("Regex")
    return found
