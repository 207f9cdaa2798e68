"""Bits per byte: which rows, which bytes, and that each token counts once with the context it was promised."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.pretrain.made import EOS, make_text_tokens, texts_of, tokenizer
from train.feed.token_shards import TokenShards
from train.pretrain.evaluation import evaluate
from train.pretrain.held_out import Group, HeldOut, _windows, held_out_documents
from train.pretrain.optimisation import Optimisation
from train.pretrain.token_bytes import token_bytes
from train.pretrain.trainer import Trainer


@pytest.fixture
def shards(tmp_path: Path) -> TokenShards:
    return TokenShards.open(
        make_text_tokens(tmp_path, {"prose": texts_of("prose", 60), "maths": texts_of("maths", 40, words=30)})
    )


@given(
    st.lists(st.integers(0, 60), max_size=30),
    st.integers(2, 17),
    st.integers(1, 9),
    st.one_of(st.none(), st.integers(0, 9)),
)
@settings(max_examples=200, deadline=None)
def test_each_token_but_the_first_is_scored_once_with_context(
    lengths: list[int], width: int, stride: int, most: int | None
) -> None:
    stride = min(stride, width)
    document, row, slot, first, count, scored = _windows(
        np.array(lengths, np.int64), width, stride, -1 if most is None else most
    )
    seen = [
        (int(d), int(f + at)) for d, f, n, s in zip(document, first, count, scored, strict=True) for at in range(s, n)
    ]
    wanted = [(d, at) for d, n in enumerate(lengths) for at in range(1, n)]
    assert seen == wanted[: len(seen)]
    assert most is not None or seen == wanted
    if most is not None:
        assert row.max(initial=-1) < most
        assert len(seen) == len(wanted) or row.max(initial=-1) == most - 1
    # Behind a document's first window each scored token has at least width - stride tokens before it in its window.
    assert all(s >= min(width + 1 - stride, n - 1) for f, n, s in zip(first, count, scored, strict=True) if f)
    # Rows are filled in order, and windows in a row do not overlap.
    places = [(int(r), int(s), int(s + n)) for r, s, n in zip(row, slot, count, strict=True)]
    assert places == sorted(places)
    assert all(end <= width + 1 for _, _, end in places)
    assert all(a[0] < b[0] or a[2] <= b[1] for a, b in zip(places, places[1:], strict=False))


def test_held_out_documents_are_whole_and_the_last_of_a_domain(shards: TokenShards) -> None:
    for number, domain in enumerate(shards.domains):
        pieces = held_out_documents(shards, number, 0.2)
        assert not pieces.continues.any()
        total = int(pieces.tokens.sum())
        assert 0.2 * domain.tokens - int(pieces.tokens.max()) <= total <= 0.2 * domain.tokens
        last = pieces.shard[-1], int(pieces.start[-1] + pieces.tokens[-1])
        assert last == (domain.shards[-1], int(shards.ends(int(domain.shards[-1]))[-1]))
        for shard, document, start, tokens in zip(*pieces[:4], strict=True):
            ends = shards.ends(int(shard))
            assert (start, start + tokens) == (ends[document - 1] if document else 0, ends[document])


def test_all_bytes_count_but_those_of_first_tokens(shards: TokenShards, tiny: Any) -> None:
    held_out = HeldOut.of(shards, share=0.3, sequence_tokens=32)
    bytes_of_token = token_bytes(tokenizer())
    trainer = Trainer(tiny(vocab_size=tokenizer().vocab_size), Optimisation())
    told = evaluate(trainer, held_out, bytes_of_token)
    for number, domain in enumerate(shards.domains):
        pieces = held_out_documents(shards, number, 0.3)
        whole = first = 0
        for shard in np.unique(pieces.shard).tolist():
            rows = pieces.document[pieces.shard == shard]
            whole += sum(shards.documents(shard).column("text_bytes").take(rows).to_pylist())
            first += int(bytes_of_token[shards.tokens(shard)[pieces.start[pieces.shard == shard]]].sum())
        score = told.by_domain[domain.name]
        assert (score.bytes, score.targets) == (whole - first, int(pieces.tokens.sum()) - len(pieces.tokens))
    assert told.whole.bytes == sum(score.bytes for score in told.by_language.values())
    assert set(told.by_language) == {"eng_Latn", "deu_Latn", "und"}


def test_bits_are_those_of_each_document_alone_with_the_promised_context(shards: TokenShards, tiny: Any) -> None:
    width = 16
    model = tiny(vocab_size=tokenizer().vocab_size)
    trainer = Trainer(model, Optimisation())
    told = evaluate(trainer, HeldOut.of(shards, share=0.1, sequence_tokens=width), token_bytes(tokenizer()))
    for number, domain in enumerate(shards.domains):
        pieces, nats = held_out_documents(shards, number, 0.1), 0.0
        for shard, start, tokens in zip(pieces.shard, pieces.start, pieces.tokens, strict=True):
            ids = torch.tensor(shards.tokens(int(shard))[start : start + tokens].astype(np.int64))[None]
            first, done = 0, 1
            while done < tokens:
                part = ids[:, first : first + width + 1]
                with torch.no_grad():
                    losses = F.cross_entropy(model(part[:, :-1])[0], part[0, 1:], reduction="none")
                nats += float(losses[done - first - 1 :].sum())
                done = first + part.shape[1]
                first = min(first + width // 2, int(tokens) - width - 1)
        score = told.by_domain[domain.name]
        assert score.nats == pytest.approx(nats, rel=1e-5)
        assert score.bits_per_byte == pytest.approx(nats / math.log(2) / score.bytes, rel=1e-5)
        assert score.nats_per_token == pytest.approx(nats / score.targets, rel=1e-5)


def test_rows_are_bounded_and_the_first_ones(shards: TokenShards) -> None:
    few = HeldOut.of(shards, share=0.3, sequence_tokens=32, max_rows=2)
    assert few.batch.rows == 4
    assert {group.domain for group in few.groups} == {"maths", "prose"}
    whole = HeldOut.of(shards, share=0.3, sequence_tokens=32)
    assert np.array_equal(few.batch.tokens[:2], whole.batch.tokens[:2])


def test_no_share_is_held_out_where_none_is_asked_for(shards: TokenShards, tiny: Any) -> None:
    held_out = HeldOut.of(shards, share=0.0, sequence_tokens=32)
    assert held_out.batch.rows == 0
    told = evaluate(Trainer(tiny(), Optimisation()), held_out, token_bytes(tokenizer()))
    assert told.row() == {
        "bits_per_byte": None, "nats_per_token": None, "targets": 0, "bytes": 0, "by_domain": {}, "by_language": {}
    }  # fmt: skip


def test_shards_that_tell_no_language_are_measured_as_unknown(tmp_path: Path) -> None:
    folder = make_text_tokens(tmp_path, {"prose": texts_of("prose", 60)}, languages=False)
    assert HeldOut.of(TokenShards.open(folder), share=0.3, sequence_tokens=32).groups == (Group("prose", "und"),)


def test_tokens_bytes_add_up_to_the_texts(tmp_path: Path) -> None:
    made = tokenizer()
    texts = [*texts_of("maths", 10), "\u00e9\U0001f600 \u4e2d\u6587\n\t" + EOS, ""]
    ids, offsets = made.encode(texts)
    table = token_bytes(made)
    assert table[made.id_of(EOS)] == 0
    for text, start, stop in zip(texts, offsets[:-1], offsets[1:], strict=True):
        assert table[ids[start:stop]].sum() == len(text.encode())


@pytest.mark.parametrize("text", ["Hello, world", "na\u00efve \u4e2d", "a b  c\n"])
def test_tokens_of_a_sentencepiece_like_vocabulary_add_up_too(text: str) -> None:
    from tokenizers import Tokenizer as Library
    from tokenizers import decoders, models, normalizers

    from train.tokenise.tokenizer import Tokenizer

    vocabulary = {"<unk>": 0, "</s>": 1, **{f"<0x{byte:02X}>": byte + 2 for byte in range(256)}}
    for piece in ("\u2581", "H", "e", "l", "o", ",", "w", "r", "d", "a", "b", "c", "n", "v", "\u00ef"):
        vocabulary[piece] = len(vocabulary)
    library = Library(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True, unk_token="<unk>"))
    library.normalizer = normalizers.Replace(" ", "\u2581")
    library.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    library.add_special_tokens(["</s>"])
    made = Tokenizer(library.to_str())
    assert token_bytes(made)[library.encode(text).ids].sum() == len(text.encode())
    assert token_bytes(made)[1] == 0


def test_an_evaluation_does_not_depend_on_training_settings(shards: TokenShards, tiny: Any) -> None:
    held_out, table = HeldOut.of(shards, share=0.2, sequence_tokens=32), token_bytes(tokenizer())
    told = [
        evaluate(Trainer(tiny(vocab_size=len(table)), replace(Optimisation(), seed=seed)), held_out, table)
        for seed in (0, 5)
    ]
    assert told[0] == told[1]
