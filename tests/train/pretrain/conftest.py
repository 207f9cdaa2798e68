"""Tiny models and batches: everything here trains in milliseconds on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from train.feed.batch import Batch
from train.model.settings import ModelSettings
from train.model.transformer import Transformer

VOCABULARY = 61


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tiny() -> Callable[..., Transformer]:
    """A model of about 10,000 parameters; the same seed gives the same."""

    def made(seed: int = 0, **settings: object) -> Transformer:
        shape = {"vocab_size": VOCABULARY, "layers": 2, "width": 16, "heads": 2, "feed_forward_width": 32, **settings}
        return Transformer(ModelSettings(**shape), seed=seed)  # type: ignore[arg-type]

    return made


@pytest.fixture
def made_batch() -> Callable[..., Batch]:
    """A batch of a step: sequences whose next token follows from the last, in documents of uneven lengths."""

    def made(step: int = 0, rows: int = 6, width: int = 12, domains: int = 2) -> Batch:
        draw = np.random.Generator(np.random.PCG64([7, step]))
        start = draw.integers(0, VOCABULARY, (rows, 1))
        tokens = (start * 3 ** np.arange(width + 1)) % VOCABULARY
        cut = draw.integers(1, width, (rows, 1))
        slots = np.arange(width + 1)[None]
        documents = (slots >= cut).astype(np.int32)
        documents[:, -1] = np.where(np.arange(rows) % 3 == 0, -1, documents[:, -1])
        positions = np.where(slots >= cut, slots - cut, slots).astype(np.int32)
        loss = (documents[:, 1:] == documents[:, :-1]) & (documents[:, 1:] >= 0)
        which = np.broadcast_to(draw.integers(0, domains, (rows, 1)), documents.shape).astype(np.int32)
        return Batch(
            tokens=tokens.astype(np.int64),
            documents=documents,
            positions=positions,
            loss=loss,
            domains=np.where(documents < 0, -1, which).astype(np.int32),
            step=step,
            first_sequence=step * rows,
        )

    return made
