"""Swarms so small that a run takes a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from tests.train.pretrain.made import WORDS, make_text_tokens, texts_of
from train.proxies.settings import Proxies


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Token shards of three domains with words of their own."""
    return make_text_tokens(tmp_path_factory.mktemp("tokens"), {name: texts_of(name, 120) for name in WORDS})


@pytest.fixture(scope="session")
def swarm() -> Callable[..., Proxies]:
    def made(**changes: Any) -> Proxies:
        told = {
            "mixtures": {"code": {"code": 0.8, "prose": 0.2}, "prose": {"code": 0.2, "prose": 0.8}},
            "sizes": {"tiny": {"layers": 1, "width": 16, "heads": 2}},
            "tokens": 8_192,
            "sequence_tokens": 64,
            "batch_sequences": 8,
            "learning_rate": 0.02,
            "mup_base_width": 16,
            "warmup_steps": 2,
            "evaluation_sequences": 8,
            "held_out": 0.2,
            "workers": 0,
            **changes,
        }
        return Proxies(**told)

    return made
