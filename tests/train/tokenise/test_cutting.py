"""Published tokenizers are encoded from memory, and answer as the library does with the whole text."""

from __future__ import annotations

import gzip
import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers

from train import Tokenizer, train_tokenizer
from train.tokenise.cutting import PUBLISHED, cutting_of
from train.tokenise.foreign import converted
from train.tokenise.pieces import MARKS, OWN, WORDS
from train.tokenise.ranks import CL100K, GPT_2, O200K

END = "<|endoftext|>"
MARK = "\u2581"
SENTENCE = "The quick brown fox (who was 42) jumps over it's lazy dog, isn't it?\n\n    return x+=1;\tif (a<b) {\r\n"
PARTS = [
    *"aZ7(.'s|<>\"/",
    " ",
    "  ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\x00",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x7f",
    "'s",
    "'LL",
]
PARTS += ["\x85", "\xa0", "\u1680", "\u180e", "\u2003", "\u2028", "\u202f", "\u3000", "\u200b", "\ufeff", END, "<tool>"]
PARTS += ["\xe9", "\xd7", "\u0130", "\u017f", "\u0301", "\u0416", "\u4e2d", "\u3002", "\u0663", "\xb2", "\u0e01", MARK]
PARTS += [
    "\u2580",
    "\u2582",
    "\U0001f600",
    "word",
    " the",
    "x" * 70,
    " " * 70,
    "=" * 66,
    "\n" * 9,
    "12345",
    "<s>",
    "</s>",
    "e\u0301",
]
texts = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PARTS), max_size=14).map("".join))


def sample() -> list[str]:
    rng = random.Random(5)
    words = SENTENCE.split(" ")
    return [" ".join(rng.choices(words, k=30)) + "".join(rng.choices(PARTS, k=10)) for _ in range(300)]


@cache
def trained() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(train_tokenizer([sample()], vocab_size=900, special_tokens=(END,)).json)
    return told


def with_pattern(pattern: str | None, **changes: Any) -> str:
    """The trained vocabulary behind another pre-tokenizer; None: the library's own byte-level one."""
    library: Any = Tokenizer(json.dumps(trained())).library
    last = pre_tokenizers.ByteLevel(add_prefix_space=changes.pop("prefix", False), use_regex=pattern is None)
    if pattern is None:
        library.pre_tokenizer = last
    else:
        library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), last])
    if "normalizer" in changes:
        library.normalizer = changes.pop("normalizer")
    for token in changes.pop("added", ()):
        library.add_tokens([token])
    return str(library.to_str())


@cache
def sentence_model(kind: str) -> str:
    out = io.BytesIO()
    asked: dict[str, Any] = {
        "vocab_size": 700,
        "num_threads": 1,
        "minloglevel": 2,
        "normalization_rule_name": "identity",
    }
    asked |= {"remove_extra_whitespaces": False, "byte_fallback": True, "allow_whitespace_only_pieces": True}
    asked |= {"model_type": "unigram", "hard_vocab_limit": False} if kind == "unigram" else {"model_type": "bpe"}
    if kind == "own":
        asked |= {"add_dummy_prefix": False, "user_defined_symbols": ["<tool>", "\n", MARK * 2, MARK * 4]}
    if kind == "across":
        asked |= {"split_by_whitespace": False}
    told = [line for text in sample() for line in text.split("\n") if "\x00" not in line]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(told), model_writer=out, **asked)
    return str(converted(out.getvalue(), "m.model").to_str())


def llama_2() -> str:
    """As published: no pre-tokenizer, so that the library takes a text as one word."""
    told = json.loads(sentence_model("plain"))
    return json.dumps({**told, "pre_tokenizer": None})


@cache
def cases() -> dict[str, tuple[str, int]]:
    patterns = {f"published {number}": (with_pattern(told), WORDS) for number, told in enumerate(sorted(PUBLISHED))}
    tool = AddedToken("<tool>", special=False, normalized=False)
    return patterns | {
        "own": (json.dumps(trained()), OWN),
        "byte level": (with_pattern(None), WORDS),
        "composed, with an added token": (with_pattern(CL100K, normalizer=normalizers.NFC(), added=[tool]), WORDS),
        "sentencepiece": (sentence_model("plain"), MARKS),
        "sentencepiece with its own": (sentence_model("own"), MARKS),
        "sentencepiece unigram": (sentence_model("unigram"), MARKS),
        "llama 2": (llama_2(), MARKS),
    }


@cache
def made(name: str) -> Tokenizer:
    return Tokenizer(cases()[name][0])


NAMES = [f"published {number}" for number in range(len(PUBLISHED))] + ["own", "byte level"]
NAMES += [
    "composed, with an added token",
    "sentencepiece",
    "sentencepiece with its own",
    "sentencepiece unigram",
    "llama 2",
]


def as_the_library(tokenizer: Tokenizer, told: list[str]) -> None:
    ids, offsets = tokenizer.encode(told)
    wanted, wanted_offsets = tokenizer.encode_strings(told)
    for number, text in enumerate(told):
        own = ids[offsets[number] : offsets[number + 1]].tolist()
        assert own == wanted[wanted_offsets[number] : wanted_offsets[number + 1]].tolist(), repr(text)


@pytest.mark.parametrize("name", NAMES)
def test_random_mixtures_are_encoded_as_a_whole(name: str) -> None:
    assert sorted(cases()) == sorted(NAMES)
    cutting = cutting_of(made(name).json)
    assert cutting is not None
    assert cutting.rule == cases()[name][1]
    rng = random.Random(11)
    as_the_library(made(name), ["".join(rng.choices(PARTS, k=rng.randrange(60))) for _ in range(500)])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), st.lists(texts, max_size=4))
def test_any_text_is_encoded_as_a_whole(name: str, told: list[str]) -> None:
    as_the_library(made(name), told)


def test_nulls_slices_and_empty_texts_are_prepared() -> None:
    array = pa.array(["no", " one  two", None, "", "three"], pa.string())
    for told in (array.slice(1), pa.chunked_array([array.slice(1, 2), array.slice(3)])):
        ids, offsets = made("sentencepiece").encode(told)
        wanted, wanted_offsets = made("sentencepiece").encode_strings([" one  two", "", "", "three"])
        assert (ids.tolist(), offsets.tolist()) == (wanted.tolist(), wanted_offsets.tolist())


@pytest.mark.parametrize("name", NAMES)
def test_no_text_becomes_a_control_token(name: str) -> None:
    tokenizer = made(name)
    controls = {number for number, token in tokenizer.library.get_added_tokens_decoder().items() if token.special}
    ids, _ = tokenizer.encode([END, f"a {END} b", "<s>", "a</s>", "\n<s>\n", "<s> </s>"])
    assert controls
    assert not controls & set(ids.tolist())


def changed(name: str, change: Any) -> str:
    told = json.loads(cases()[name][0])
    change(told)
    return json.dumps(told)


@pytest.mark.parametrize(
    "told",
    [
        lambda: with_pattern(r"\s+|\S+"),
        lambda: with_pattern(CL100K, prefix=True),
        lambda: with_pattern(CL100K, normalizer=normalizers.NFKC()),
        lambda: with_pattern(O200K, added=[AddedToken("<a b>", special=False)]),
        lambda: with_pattern(GPT_2, added=[AddedToken("<a>", special=False, lstrip=True)]),
        lambda: sentence_model("across"),
        lambda: changed("sentencepiece", lambda tree: tree["model"]["vocab"].update({f"a{MARK}b": 9999})),
        lambda: changed("sentencepiece", lambda tree: tree["normalizer"]["normalizers"].append({"type": "NFC"})),
        lambda: changed("sentencepiece", lambda tree: tree.update(pre_tokenizer={"type": "Whitespace"})),
        lambda: changed("sentencepiece unigram", lambda tree: tree.update(pre_tokenizer=None)),
        lambda: changed("own", lambda tree: tree["pre_tokenizer"]["pretokenizers"][0].update(invert=True)),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_cut(told: Any) -> None:
    assert cutting_of(told()) is None


def test_any_tokenizer_of_the_library_is_looked_at() -> None:
    library: Any = Tokenizer(json.dumps(trained())).library
    library.model = models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>")
    library.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits()])
    library.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()])
    assert cutting_of(library.to_str()) is None


@pytest.mark.parametrize("name", ["published 0", "published 1", "published 2", "sentencepiece", "llama 2"])
def test_shared_texts_are_encoded_as_a_whole(name: str, shared: Path) -> None:
    found = []
    for domain in ("code_python", "techdoc_multilingual", "math_en"):
        with gzip.open(shared / "text" / f"{domain}.jsonl.gz") as rows:
            found += [json.loads(row)["text"][:30_000] for row in rows][::25]
    as_the_library(made(name), found)
