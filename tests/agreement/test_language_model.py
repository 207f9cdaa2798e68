"""Our reader of lid.176.ftz against fasttext-predict 0.9.2: the same labels, the same scores to rounding."""

from __future__ import annotations

import gzip
import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from filters.language_kernels import predict
from filters.language_measure import model_path
from filters.language_model import load
from text import buffers_of

TEXTS = ["", "a", "\x00abc def", "é\u0301x 語 🙂", "word " * 400, "x" * 3000]


def ours(texts: list[str], top: int) -> tuple[list[list[str]], np.ndarray]:  # type: ignore[type-arg]
    model = load(model_path())
    labels, shares = predict(*buffers_of(texts), 1 << 40, top, model.lookup(), model.end_row, *model.tree)
    return [[model.labels[label] for label in row if label >= 0] for row in labels], shares


SPACES = re.compile("[\n\x85\xa0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
"""What separates words for us; fastText knows ASCII's white space only, and takes the others for letters."""


def check(texts: list[str]) -> None:
    fasttext = import_module("fasttext")
    peer = fasttext.load_model(model_path()).f
    labels, shares = ours(texts, 2)
    for text, mine, share in zip(texts, labels, shares, strict=True):
        theirs = peer.predict(SPACES.sub(" ", text) + "\n", 2, 0.0, "strict")
        for (score, label), own, value in zip(theirs, mine, share, strict=True):
            # fastText lets a probability pass 1 by its 1e-5 a node; ours stops at 1. Below that labels may tie.
            assert min(1.0, score) == pytest.approx(value, abs=2e-6)
            assert label == f"__label__{own}" or score < 1e-4


def test_odd_texts() -> None:
    check(TEXTS)


def test_marks_of_the_training_format_are_only_text() -> None:
    # fastText leaves out a word that looks like a label, and stops at one that looks like its own end of line.
    assert ours(["__label__en hello there", "</s> hello to all of you out there"], 1)[0] == [["en"], ["en"]]


def test_real_sentences(shared: Path) -> None:
    with gzip.open(shared / "language/lingua_sentences.jsonl.gz", "rt", encoding="utf-8") as file:
        check([json.loads(line)["text"] for line in file][::7])
