"""sentencepiece's models made into tokenizers that give the same ids, without its library.

What sentencepiece does, and what becomes of it:

    characters by a compiled table, runs of spaces to one, U+2581 for a space and before the text    normalizer
    never across a user-defined piece; nor, where no piece has a U+2581 inside, across words         pre-tokenizer
    BPE: the pair whose piece scores best is merged, the left one of equals                          merges so ordered
    unigram: the path of the best sum of scores                                                      the same
    control, unknown and byte pieces are no text                                                     no merge, low score

What cannot be the same is refused, with one exception: the library applies the table of characters (nmt_nfkc and its
kin) to clusters of characters, sentencepiece to the longest match; rare sequences of combining characters differ.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from train.tokenise.sentence_model import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    SentenceModel,
)

KINDS = {3: "word", 4: "char"}
BLANK = "\u2581"
UNKNOWN_PENALTY = 10.0  # SOURCE: sentencepiece, unigram_model.cc: below the least score of a piece
MOST_CUTS = 10_000
BLANK_INSIDE = f"[^{BLANK}]{BLANK}"
SPLITS_WORDS = f"(?<!{BLANK}){BLANK}*[^{BLANK}]+"  # from the first of a run only: a long run is looked at once


def from_model(model: SentenceModel, controls: tuple[str, ...] = ()) -> Any:
    """A `tokenizers.Tokenizer` that gives the ids of sentencepiece.

    controls: names of user-defined pieces that are to be control tokens, which no text becomes. Raises ValueError for a
    model that does what the library cannot.
    """
    from tokenizers import AddedToken, Tokenizer

    if controls:
        kinds = [
            CONTROL if piece.text in controls and piece.kind == USER_DEFINED else piece.kind for piece in model.pieces
        ]
        pieces = [replace(piece, kind=kind) for piece, kind in zip(model.pieces, kinds, strict=True)]
        model = replace(model, pieces=tuple(pieces))
    _check(model)
    cuts: list[tuple[str, str]] = []
    if model.algorithm == UNIGRAM:
        made = Tokenizer(_unigram(model))
    else:
        made = Tokenizer(_bpe(model, whole=False))
        if model.of_kind(USER_DEFINED):
            # A user-defined piece is no merge of others: a whole word that is in the vocabulary is taken as it is,
            # so each word that must not be is cut where its own merges leave a border.
            cuts = _cuts(model, made)
            made = Tokenizer(_bpe(model, whole=True))
    made.normalizer = _normalizer(model)
    if model.characters:
        _check_characters(made)
    _check_user_defined(model, made)
    before = _pre_tokenizer(model, cuts)
    if before is not None:
        made.pre_tokenizer = before
    made.decoder = _decoder(model)
    names = model.of_kind(CONTROL)
    made.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    return made


def _check(model: SentenceModel) -> None:
    names = [piece.text for piece in model.pieces]
    singles = _singles(model)
    normal = [piece.text for piece in model.pieces if piece.kind == NORMAL]
    said = None
    if model.algorithm not in (UNIGRAM, BPE):
        said = f"a {KINDS.get(model.algorithm, 'strange')} model; only unigram and BPE are known"
    elif model.blank_behind:
        said = "it treats white space as a suffix, which the library tokenizers cannot"
    elif UNUSED in {piece.kind for piece in model.pieces}:
        said = "it has unused pieces, which the library tokenizers does not know"
    elif len(set(names)) < len(names) or "" in names:
        said = "a piece stands twice, or is empty"
    elif any(" " in text for text in model.of_kind(NORMAL, USER_DEFINED)) and model.escapes_blanks:
        said = "a piece holds a space, which the library tokenizers cannot match"
    elif not singles:
        said = "no piece is a character"
    elif not singles.issuperset("".join(normal)):
        said = "a piece has a character that is no piece, so the library tokenizers takes it for unknown"
    elif model.algorithm == UNIGRAM and _hidden(model) and not singles.issuperset("".join(model.of_kind(USER_DEFINED))):
        said = "a user-defined piece has a character that is no piece, so the library tokenizers takes it for unknown"
    elif model.algorithm == BPE and not all(len(set(text)) == 1 for text in _alike(model)):
        said = "pieces have the same score, and the library tokenizers merges no two pairs in the order of the text"
    if said is not None:
        raise ValueError(said)


def _alike(model: SentenceModel) -> set[str]:
    """Pieces of several characters that have the score of another."""
    normal = [piece for piece in model.pieces if piece.kind == NORMAL and len(piece.text) > 1]
    counts = Counter(piece.score for piece in normal)
    return {piece.text for piece in normal if counts[piece.score] > 1}


def _singles(model: SentenceModel) -> set[str]:
    return {text for text in model.of_kind(NORMAL, USER_DEFINED) if len(text) == 1}


def _hidden(model: SentenceModel) -> bool:
    """Whether a name of what is no text has an unknown character: then no way around it need be better."""
    return not _singles(model).issuperset("".join(model.of_kind(UNKNOWN, CONTROL, BYTE)))


def _check_characters(made: Any) -> None:
    """Try the table on each character there is: a damaged one makes the library panic, which is no Exception."""
    try:
        made.normalizer.normalize_str("".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000))
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"its table of characters is damaged: {error}") from None


def _check_user_defined(model: SentenceModel, made: Any) -> None:
    bare = _normalizer(replace(model, blank_first=False, one_blank=False))
    for text in model.of_kind(USER_DEFINED):
        if bare.normalize_str(text) != text:
            raise ValueError("a user-defined piece holds what the normalisation changes; the library would change it")


def _unigram(model: SentenceModel) -> Any:
    from tokenizers import models

    scores = [piece.score for piece in model.pieces if piece.kind == NORMAL] or [0.0]
    least, most = min(scores), max([0.0, *scores])
    # sentencepiece never sees these; the library does, so all ways around them must be better.
    never = 2 * (least - UNKNOWN_PENALTY) - 1
    vocab = []
    for piece in model.pieces:
        score = piece.score
        if piece.kind == USER_DEFINED:
            # SOURCE: sentencepiece, unigram_model.cc, where the best score is never below the least positive float.
            score = len(piece.text.encode()) * most - 0.1
        elif piece.kind != NORMAL:
            score = never * len(piece.text)
        vocab.append((piece.text, score))
    unknown = next(number for number, piece in enumerate(model.pieces) if piece.kind == UNKNOWN)
    return models.Unigram(vocab, unk_id=unknown, byte_fallback=model.byte_fallback)


def _bpe(model: SentenceModel, *, whole: bool) -> Any:
    from tokenizers import models

    normal = {piece.text: (-piece.score, number) for number, piece in enumerate(model.pieces) if piece.kind == NORMAL}
    alike = _alike(model)
    merges = []
    for text, (cost, number) in normal.items():
        for cut in range(1, len(text)):
            left, right = normal.get(text[:cut]), normal.get(text[cut:])
            if left is not None and right is not None:
                # Runs of one character that score alike grow from the left: the longest left part goes first.
                merges.append((cost, -cut if text in alike else 0, number, left, right, text[:cut], text[cut:]))
    merges.sort()
    return models.BPE(
        {piece.text: number for number, piece in enumerate(model.pieces)},
        [(left, right) for *_, left, right in merges],
        unk_token=model.of_kind(UNKNOWN)[0],
        fuse_unk=True,
        byte_fallback=model.byte_fallback,
        ignore_merges=whole,
    )


def _cuts(model: SentenceModel, made: Any) -> list[tuple[str, str]]:
    """(what stands before, what behind the first border) of each piece that its own merges do not make."""
    texts = model.of_kind(NORMAL, UNKNOWN, CONTROL, BYTE)
    cuts = []
    for text, told in zip(texts, made.encode_batch(texts, add_special_tokens=False), strict=True):
        if len(told.ids) > 1:
            end = next((end for _, end in told.offsets if end), len(text))
            if end < len(text):
                cuts.append((text[:end], text[end:]))
    if len(cuts) > MOST_CUTS:
        raise ValueError(f"{len(cuts)} of its pieces are no merges of others")
    return cuts


def _normalizer(model: SentenceModel) -> Any:
    from tokenizers import Regex, normalizers

    told: list[Any] = []
    blank = BLANK if model.escapes_blanks else " "
    if model.characters:
        told.append(normalizers.Precompiled(model.characters))
    if model.one_blank:
        told += [normalizers.Replace(Regex(r"\A +"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if model.blank_first:
        told.append(normalizers.Prepend(blank))
    if model.escapes_blanks:
        told.append(normalizers.Replace(" ", BLANK))
    if model.one_blank:
        # Also what was a U+2581 before, and the one in front of nothing. Each run is looked at once.
        told.append(normalizers.Replace(Regex(f"(?<!{blank}){blank}++\\z"), ""))
    return normalizers.Sequence(told)


def _pre_tokenizer(model: SentenceModel, cuts: list[tuple[str, str]]) -> Any:
    from tokenizers import Regex, pre_tokenizers

    told = []
    user_defined = sorted(model.of_kind(USER_DEFINED), key=len, reverse=True)
    if user_defined and model.algorithm == BPE:
        told.append(pre_tokenizers.Split(Regex("|".join(map(_literal, user_defined))), "isolated"))
    if model.algorithm == UNIGRAM and _hidden(model):
        # No piece reaches over an unknown character, so the text may be split there, and the names with it.
        letters = "".join(f"\\x{{{ord(letter):x}}}" for letter in sorted(_singles(model)))
        told.append(pre_tokenizers.Split(Regex(f"[^{letters}]+"), "isolated"))
    inside = re.compile(BLANK_INSIDE)
    if BLANK in model.of_kind(NORMAL) and not any(map(inside.search, model.of_kind(NORMAL, USER_DEFINED))):
        told.append(pre_tokenizers.Split(Regex(SPLITS_WORDS), "isolated"))
    if cuts:
        pattern = "|".join(f"{_literal(before)}(?={_literal(behind)}\\z)" for before, behind in cuts)
        told.append(pre_tokenizers.Split(Regex(f"\\A(?:{pattern})"), "isolated"))
    return pre_tokenizers.Sequence(told) if told else None


def _literal(text: str) -> str:
    return "".join(letter if letter.isalnum() else f"\\x{{{ord(letter):x}}}" for letter in text)


def _decoder(model: SentenceModel) -> Any:
    from tokenizers import decoders

    told: list[Any] = [decoders.Replace(BLANK, " ")] if model.escapes_blanks else []
    if model.byte_fallback:
        told.append(decoders.ByteFallback())
    told.append(decoders.Fuse())
    if model.blank_first:
        told.append(decoders.Strip(content=" ", left=1, right=0))
    return decoders.Sequence(told)
