"""Tokenizers of other libraries give the ids that those libraries give, and no text becomes a control token."""

from __future__ import annotations

import base64
import gzip
import importlib
import io
import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from train import load_tokenizer, train_tokenizer
from train.tokenise.foreign import converted
from train.tokenise.patterns import PatternError, translated
from train.tokenise.ranks import KNOWN, from_ranks, printed
from train.tokenise.sentence_model import read_model
from train.tokenise.sentence_pieces import from_model
from train.tokenise.tokenizer import Tokenizer, TokenizerError

openai_public: Any = importlib.import_module("tiktoken_ext.openai_public")
END = "<|endoftext|>"
SYLLABLES = ["ba", "the", "ing", "or", "qui", "tion", "lo", "ne", "st", "er", "up", "ck"]
WORDS = [a + b + c for a in SYLLABLES for b in SYLLABLES[::2] for c in ("", "s", "ed")]
WORDS += ["naïve", "straße", "café", "мир", "слово", "中文", "的", "日本", "مرحبا", "नमस्ते", "x = 1", "12,345", "don't"]
# What conversions can get wrong: white space of all kinds, the mark for a blank, and the names of pieces of no text.
PARTS = [
    *"aZ7(.'s|<>\"/",
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\x00",
    "\x0b",
    "\x85",
    "\xa0",
    "\u3000",
    "\u200b",
]
PARTS += [
    "'s",
    "'LL",
    "'\u017f",
    "é",
    "É",
    "\u01c5",
    "\u02b0",
    "中",
    "的",
    "٣",
    "²",
    "😀",
    "12345",
    "<s>",
    "</s>",
    "<unk>",
]
PARTS += ["<0x41>", "<0x0A>", "<mask>", "<turn>", "<table>", "<ab", "\u2581", "\u2581\u2581", "the", " of the", END]
texts = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PARTS), max_size=20).map("".join))


def lines(count: int = 3000) -> list[str]:
    rng = random.Random(3)
    ends = [".", "?", "!", ",", ".\n", " </a>", " <b>"]
    return [" ".join(rng.choices(WORDS, k=rng.randrange(3, 15))) + rng.choice(ends) for _ in range(count)]


# --- sentencepiece ---------------------------------------------------------------------------------------------------

LLAMA = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True}
OWN = ["<turn>", "\n", "\n\n", "\u2581\u2581", "<table>", "<ab"]
MODELS: dict[str, dict[str, Any]] = {
    "llama": {**LLAMA, "split_digits": True, "allow_whitespace_only_pieces": True},
    "gemma": {**LLAMA, "add_dummy_prefix": False, "user_defined_symbols": OWN, "control_symbols": ["<mask>"]},
    "plain": {},
    "across words": {"split_by_whitespace": False, "normalization_rule_name": "identity"},
    "unigram": {"model_type": "unigram"},
    "unigram bytes": {"model_type": "unigram", **LLAMA, "allow_whitespace_only_pieces": True},
    "unigram rare": {"model_type": "unigram", "byte_fallback": True},  # has no <
    "unigram own": {
        "model_type": "unigram", "byte_fallback": True, "normalization_rule_name": "nfkc",
        "user_defined_symbols": ["<turn>", "\n", "\u2581\u2581"], "control_symbols": ["<mask>"],
    },
}  # fmt: skip


@cache
def model(name: str) -> bytes:
    out = io.BytesIO()
    asked = {"vocab_size": 520, "model_type": "bpe", "num_threads": 1, "minloglevel": 2, **MODELS[name]}
    if asked["model_type"] == "unigram":
        asked["hard_vocab_limit"] = False
    told = [line for line in lines() if name != "unigram rare" or "<" not in line]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(told), model_writer=out, **asked)
    return out.getvalue()


@cache
def pair(name: str) -> tuple[Callable[[str], list[int]], Tokenizer]:
    """sentencepiece's encoding, and ours of the same file."""
    data = model(name)
    made = Tokenizer(converted(data, "m.model").to_str())
    return sentencepiece.SentencePieceProcessor(model_proto=data).encode, made


def ids_of(made: Tokenizer, text: str) -> list[int]:
    return [int(number) for number in made.encode([text])[0]]


@pytest.mark.parametrize("name", MODELS)
def test_sentencepiece_models_give_their_own_ids(name: str) -> None:
    wanted, made = pair(name)
    rng = random.Random(7)
    for _ in range(1500):
        text = "".join(rng.choices(PARTS, k=rng.randrange(20)))
        ids = ids_of(made, text)
        if wanted(text) != ids:
            assert name.startswith("unigram"), text
            assert as_good(made, wanted(text), ids), text


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["llama", "gemma", "across words", "unigram bytes"]), texts)
def test_sentencepiece_models_give_their_own_ids_of_any_text(name: str, text: str) -> None:
    wanted, made = pair(name)
    ids = ids_of(made, text)
    assert wanted(text) == ids or (name.startswith("unigram") and as_good(made, wanted(text), ids))


def as_good(made: Tokenizer, wanted: Sequence[int], ids: Sequence[int]) -> bool:
    """Whether two unigram paths have the same sum of scores, which sentencepiece adds up in 32 bits."""
    scores = [score for _, score in json.loads(made.json)["model"]["vocab"]]
    one, other = (sum(scores[number] for number in path if scores[number] > -40) for path in (wanted, ids))
    return bool(abs(one - other) < 1e-3)


@pytest.mark.parametrize("name", ["llama", "gemma", "unigram bytes"])
def test_sentencepiece_texts_come_back(name: str) -> None:
    _, made = pair(name)
    for text in [*lines(20), " a  b\n\tc ", "<s></s><0x41><mask>", "\x00😀\u200b"]:
        assert made.decode(ids_of(made, text)) == text


def test_a_name_with_an_unknown_character_is_split_there() -> None:
    assert "<" not in read_model(model("unigram rare")).of_kind(1)
    assert "<" in read_model(model("unigram")).of_kind(1)


@pytest.mark.parametrize("name", MODELS)
def test_no_text_becomes_a_control_piece_of_sentencepiece(name: str) -> None:
    _, made = pair(name)
    named = {token.content for token in made.library.get_added_tokens_decoder().values()}
    assert {"<s>", "</s>"} <= named
    controls = {made.id_of(token) for token in named}
    for text in ["</s>", "<s>", "a</s>", "\n</s>\n", "<mask>", "<turn><mask>", "\u2581</s>"]:
        assert not controls & set(ids_of(made, text)), text


def test_a_user_defined_piece_is_no_text_when_it_is_named_as_a_control(tmp_path: Path) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(model("gemma"))
    text = "a<turn>b <turn>"
    loose, strict = load_tokenizer(str(path)), load_tokenizer(str(path), ("<turn>",))
    number = strict.id_of("<turn>")
    assert number in ids_of(loose, text)
    assert number not in ids_of(strict, text)
    assert strict.decode(ids_of(strict, text)) == text


@pytest.mark.parametrize("name", ["llama", "unigram bytes"])
def test_shared_texts_get_the_ids_of_sentencepiece(name: str, shared: Path) -> None:
    wanted, made = pair(name)
    with gzip.open(shared / "text" / "techdoc_multilingual.jsonl.gz") as rows:
        parts = [line for row in rows for line in json.loads(row)["text"].split("\n")][::150]
    ids, offsets = made.encode(parts)
    wrong = 0
    for part, a, b in zip(parts, offsets[:-1], offsets[1:], strict=True):
        told = wanted(part)
        wrong += told != ids[a:b].tolist()
        assert told == ids[a:b].tolist() or (name == "unigram bytes" and as_good(made, told, ids[a:b].tolist()))
    assert wrong <= len(parts) // 100


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("plain", {"model_type": "word", "hard_vocab_limit": False}, "a word model; only unigram and BPE are known"),
        ("plain", {"model_type": "char", "hard_vocab_limit": False}, "a char model; only unigram and BPE are known"),
        ("plain", {"treat_whitespace_as_suffix": True}, "it treats white space as a suffix"),
        ("plain", {"user_defined_symbols": ["\u2460"]}, "a user-defined piece holds what the normalisation changes"),
    ],
)
def test_a_model_that_the_library_cannot_follow_is_refused(
    name: str, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.model"
    out = io.BytesIO()
    asked = {"vocab_size": 300, "model_type": "bpe", "num_threads": 1, "minloglevel": 2, **changes}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines(300)), model_writer=out, **asked)
    path.write_bytes(out.getvalue())
    with pytest.raises(TokenizerError, match=f"^{path}: {said}"):
        load_tokenizer(str(path))


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3]) + bytes([value])
    return bytes([number << 3 | 2, len(value)]) + value


def by_hand(*pieces: tuple[str, float, int]) -> bytes:
    """A BPE model of these pieces: text, score, kind."""
    told = [("<unk>", 0.0, 2), *pieces]
    floats = [b"\x15" + np.float32(score).tobytes() for _, score, _ in told]
    own = [
        field(1, text.encode()) + score + field(3, kind) for (text, _, kind), score in zip(told, floats, strict=True)
    ]
    return b"".join(field(1, one) for one in own) + field(2, field(3, 2))


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ([("a", -1, 1), ("a", -2, 1)], "a piece stands twice"),
        ([("", -1, 1)], "a piece stands twice, or is empty"),
        ([("ab", -1, 1), ("a", -2, 1)], "a piece has a character that is no piece"),
        ([("a", -5, 1), ("b", -5, 1), ("ab", -1, 1), ("ba", -1, 1)], "pieces have the same score"),
        ([("a", -1, 5)], "it has unused pieces"),
        ([("a b", -1, 4)], "a piece holds a space"),
        ([("a", float("nan"), 1)], "a piece without a score or a kind that is known"),
        ([("a", -1, 9)], "a piece without a score or a kind that is known"),
    ],
)
def test_pieces_that_cannot_be_followed_are_refused(
    pieces: list[tuple[str, float, int]], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.model"
    path.write_bytes(by_hand(*pieces))
    with pytest.raises(TokenizerError, match=f"^{path}: {said}"):
        load_tokenizer(str(path))


@pytest.mark.parametrize("table", [b"\0", b"\0\4\0\0" + b"\xff" * 1024 + b"a\0"])
def test_a_damaged_table_of_characters_is_refused(table: bytes, tmp_path: Path, capfd: Any) -> None:
    path = tmp_path / "m.model"
    told = b"\x12" + bytes([0x80 | len(table) & 127, len(table) >> 7]) + table
    path.write_bytes(by_hand(("a", -1, 1)) + b"\x1a" + bytes([0x80 | len(told) & 127, len(told) >> 7]) + told)
    with pytest.raises(TokenizerError, match=f"^{path}: (its table of characters is damaged|the library tokenizers)"):
        load_tokenizer(str(path))


def test_a_piece_that_its_own_merges_do_not_make_is_not_taken_as_a_whole() -> None:
    pieces = [
        ("a", -9, 1),
        ("b", -9.5, 1),
        ("c", -9.6, 1),
        ("ab", -1, 1),
        ("bc", -2, 1),
        ("abc", -5, 1),
        ("abcabc", -6, 1),
    ]
    data = by_hand(*pieces, ("\u2581", -20, 1), ("bca", -0.5, 1), ("<u>", 0, 4))
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    made = Tokenizer(from_model(read_model(data)).to_str())
    for text in ["abc", "abcabc", "abcabcabc", "abc<u>abcabc<u>", "<u>abcabc", "cabca<u>", "<unk><u><unk>"]:
        assert ids_of(made, text) == processor.encode(text), text


@pytest.mark.parametrize("longest", [2, 3, 6, 8])
def test_runs_that_score_alike_are_merged_from_the_left(longest: int) -> None:
    """As those of Llama 2 and Mistral: blanks of all lengths, with one score."""
    runs = [("\u2581" * length, -1e9, 1) for length in [*range(2, longest + 1), longest + 3]]
    data = by_hand(("a", -9, 1), ("\u2581", -8, 1), ("\u2581a", -1, 1), *runs)
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    made = Tokenizer(from_model(read_model(data)).to_str())
    for length in range(60):
        for text in ("\u2581" * length, "\u2581" * length + "a", "a" + "\u2581" * length + "aa"):
            assert ids_of(made, text) == processor.encode(text), text


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_model_is_refused_or_read_but_never_breaks(data: st.DataObject) -> None:
    whole = bytearray(by_hand(("a", -1, 1), ("b", -2, 1), ("ab", -3, 1), ("</s>", 0, 3), ("<t>", 0, 4)))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(1, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(whole)))
    try:
        made = converted(bytes(whole[:cut]), "m.model")
    except ValueError:
        return
    assert made is None or made.get_vocab_size() > 0


# --- tiktoken --------------------------------------------------------------------------------------------------------


@cache
def ranks() -> dict[bytes, int]:
    """Ranks as a training of byte pairs leaves them, from the tokenizer that is trained here."""
    told = train_tokenizer([lines()], vocab_size=700).library
    bytes_of = {printed(bytes([byte])): byte for byte in range(256)}
    return {bytes(bytes_of[letter] for letter in text): number for text, number in told.get_vocab().items()}


def written(told: Mapping[bytes, int]) -> bytes:
    return b"".join(
        base64.b64encode(token) + b" %d\n" % rank for token, rank in sorted(told.items(), key=lambda x: x[1])
    )


@cache
def published(name: str) -> dict[str, Any]:
    """What tiktoken itself says of an encoding, but for the ranks, which it would fetch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})
        patch.setattr(openai_public, "data_gym_to_mergeable_bpe_ranks", lambda *_, **__: {})
        told: dict[str, Any] = openai_public.ENCODING_CONSTRUCTORS[name]()
    return told


def encoding(pattern: str, told: Mapping[bytes, int]) -> tiktoken.Encoding:
    return tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=dict(told), special_tokens={})


@cache
def tiktoken_pair(name: str) -> tuple[tiktoken.Encoding, Tokenizer]:
    made = from_ranks(ranks(), name="t", pattern=published(name)["pat_str"], special_tokens=(END,))
    return encoding(published(name)["pat_str"], ranks()), Tokenizer(made.to_str())


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(KNOWN)), texts)
def test_tiktoken_files_give_their_own_ids_of_any_text(name: str, text: str) -> None:
    wanted, made = tiktoken_pair(name)
    ids = ids_of(made, text)
    assert ids == wanted.encode_ordinary(text)
    assert made.decode(ids) == text
    assert made.id_of(END) not in ids


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_known_patterns_split_as_those_of_tiktoken(name: str) -> None:
    pattern = KNOWN[name].pattern
    same = min(other for other in KNOWN if KNOWN[other].pattern == pattern)
    assert published(name)["pat_str"] == published(same)["pat_str"]
    rng = random.Random(5)
    for _ in range(80 if name == same else 2):
        text = "".join(rng.choices(PARTS, k=rng.randrange(1, 25)))
        for one in (pattern, translated(published(name)["pat_str"])):
            pieces = pre_tokenizers.Split(Regex(one), "isolated").pre_tokenize_str(text)
            told = {bytes([byte]): byte for byte in range(256)}
            for piece, _ in pieces:
                told.setdefault(piece.encode(), len(told))
            wanted = encoding(published(name)["pat_str"], told)
            assert wanted.encode_ordinary(text) == [told[piece.encode()] for piece, _ in pieces], text


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_known_special_tokens_are_those_of_tiktoken(name: str) -> None:
    by_id = {number: content for content, number in published(name)["special_tokens"].items()}
    own = {number: content for content, number in KNOWN[name].special_tokens.items()}
    assert own.keys() == by_id.keys()
    assert own == by_id | ({200018: "<|endofprompt|>"} if name == "o200k_harmony" else {})


@pytest.mark.parametrize("alphabet", ["ab", "abc"])
def test_ranks_of_any_kind_give_the_ids_of_tiktoken(alphabet: str) -> None:
    rng = random.Random(len(alphabet))
    for _ in range(25):
        told = {bytes([byte]): byte for byte in range(256)}
        for _ in range(rng.randrange(3, 30)):
            told.setdefault("".join(rng.choices(alphabet, k=rng.randrange(2, 7))).encode(), len(told))
        pattern = r"[\s\S]+"
        made = Tokenizer(from_ranks(told, name="t", pattern=pattern, special_tokens=()).to_str())
        wanted = encoding(pattern, told)
        for _ in range(40):
            text = "".join(rng.choices(alphabet, k=rng.randrange(1, 40)))
            assert ids_of(made, text) == wanted.encode_ordinary(text)


def test_special_tokens_have_the_ids_that_are_asked_and_holes_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "own.tiktoken"
    told = {token: rank + (rank >= 300) for token, rank in ranks().items()}  # id 300 is free, as 50256 of p50k_base is
    path.write_bytes(written(told))
    asked = {END: 300, "<|a|>": 710, "<|b|>": 705}
    made = load_tokenizer(str(path), pattern=KNOWN["p50k_base"].pattern, special_tokens=asked)
    again = Tokenizer(made.json)
    for content, number in asked.items():
        assert made.id_of(content) == again.id_of(content) == number
    assert made.vocab_size == 711
    text = f"{END} unused 704 <|unused 704|> <|a|><|b|>"
    ids = ids_of(again, text)
    assert again.decode(ids) == text
    assert not set(asked.values()) & set(ids)
    assert set(ids) <= set(told.values())
    wanted = tiktoken.Encoding("t", pat_str=KNOWN["p50k_base"].pattern, mergeable_ranks=told, special_tokens=asked)
    assert ids == wanted.encode_ordinary(text)


def test_shared_texts_get_the_ids_of_tiktoken(shared: Path) -> None:
    wanted, made = tiktoken_pair("o200k_base")
    with gzip.open(shared / "text" / "techdoc_multilingual.jsonl.gz") as rows:
        found = [json.loads(row)["text"] for row in rows][::15]
    ids, offsets = made.encode(found)
    assert ids.tolist() == [number for text in found for number in wanted.encode_ordinary(text)]
    assert len(offsets) == len(found) + 1


def test_a_known_name_needs_the_ranks_of_that_file(tmp_path: Path) -> None:
    path = tmp_path / "cl100k_base.tiktoken"
    path.write_bytes(written(ranks()))
    with pytest.raises(TokenizerError, match=r"a tiktoken file holds no pattern, and only that of gpt2, r50k_base, "):
        load_tokenizer(str(path))


@pytest.mark.parametrize(
    ("data", "settings", "said"),
    [
        (b"YQ== 0\n", {}, "255 of the 256 bytes have no rank, so not every text can be encoded"),
        (b"YQ== 0\nYQ== 1\n", {}, "line 2: a token or a rank that was there before"),
        (b"YQ== 0\nYg== 0\n", {}, "line 2: a token or a rank that was there before"),
        (b"YQ== 0\nnonsense\n", {}, "line 2: not base64 and a rank"),
        (b"YQ== 0\n= 5\n", {}, "line 2: not base64"),
        (None, {"pattern": "("}, "pattern: a ( is not closed"),
        (None, {"pattern": r"[\s\S]+", "special_tokens": {"<a>": 3}}, "special_tokens: two tokens would have the id 3"),
        (
            None,
            {"pattern": r"[\s\S]+", "special_tokens": {"<a>": 10**9}},
            "special_tokens: more than 65536 ids between",
        ),
        (b"{}", {"pattern": "x"}, "no tiktoken file, and only such a one needs a pattern"),
    ],
)
def test_what_is_wrong_with_a_tiktoken_file_is_named(
    data: bytes | None, settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.tiktoken"
    path.write_bytes(written(ranks()) if data is None else data)
    with pytest.raises(TokenizerError) as caught:
        load_tokenizer(str(path), **settings)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (r"\p{N}{1,3}+", r"(?>\p{N}{1,3})"),
        (r"(?:ab|c){2,}+x", r"(?>(?:ab|c){2,})x"),
        (r"[^\]$]{2}+", r"(?>[^\]$]{2})"),
        (r"a{1,3}b++c?+d*?", r"a{1,3}b++c?+d*?"),
        (r"\s+$|^a", r"\s+\z|\Aa"),
        (r"(?i:'s)|\p{Lu}{3}+", r"(?i:'s)|(?>\p{Lu}{3})"),
        (r"{a}\{2}", r"{a}\{2}"),
    ],
)
def test_patterns_are_told_in_the_dialect_of_the_library(pattern: str, wanted: str) -> None:
    assert translated(pattern) == wanted


@pytest.mark.parametrize(
    "pattern",
    [r"\w+", r"\bx", r"(?m)a", "(?s:.)", "(?i)a", "a{2}?", r"\<a", "[]a]", "[a--b]", "[a", "a)", "a\\", r"(a)\1"],
)
def test_patterns_that_could_mean_another_thing_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        translated(pattern)


# --- long texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["a", " ", "\n", "\u2581", "=", "中"])
@pytest.mark.parametrize("name", ["llama", "gemma", "plain", "unigram bytes", "cl100k_base", "o200k_base"])
def test_long_runs_take_time_in_proportion(name: str, unit: str) -> None:
    import time

    made = (pair(name) if name in MODELS else tiktoken_pair(name))[1]
    seconds = []
    for length in (30_000, 120_000):
        started = time.process_time()
        made.encode([unit * length])
        seconds.append(time.process_time() - started)
    assert seconds[1] < 10 * seconds[0] + 0.3
