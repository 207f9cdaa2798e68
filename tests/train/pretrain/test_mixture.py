"""What mixtures are for: a proxy of about 1M parameters on real text gets better at what it is given more of."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.train.pretrain.made import EOS, make_text_tokens
from train.pretrain import Pretrain, run
from train.tokenise.bpe import train_tokenizer

DOMAINS = {"books": "books_en", "code": "code_python"}
PART_CHARS = 20_000  # novels are cut up, so that 5% of the text can be held out
TEXT_CHARS = 2_000_000


def _texts(path: Path) -> Iterator[str]:
    total = 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["text"]
            yield from (text[at : at + PART_CHARS] for at in range(0, len(text), PART_CHARS))
            total += len(text)
            if total >= TEXT_CHARS:
                return


@pytest.mark.heavy
@pytest.mark.timeout(1200)
def test_the_loss_on_a_domain_falls_as_its_weight_rises(shared: Path, tmp_path: Path) -> None:
    texts = {name: list(_texts(shared / "text" / f"{file}.jsonl.gz")) for name, file in DOMAINS.items()}
    made = train_tokenizer([told[::4] for told in texts.values()], vocab_size=2048, special_tokens=(EOS,))
    tokens = make_text_tokens(tmp_path / "tokens", texts, made=made, languages=False)
    settings = Pretrain(
        layers=4,
        width=128,
        heads=4,
        weights={"books": 1, "code": 1},
        held_out=0.05,
        sequence_tokens=256,
        batch_sequences=8,
        steps=70,
        learning_rate=0.004,
        warmup_steps=10,
        decay_share=0.3,
        checkpoint_every_steps=None,
        evaluate_every_steps=None,
        evaluation_sequences=24,
        guard=None,
        threads=1,
    )
    found = []
    for books in (1, 5, 9):
        weights = {"books": books / 10, "code": 1 - books / 10}
        told = run(replace(settings, weights=weights), tokens=tokens, out=str(tmp_path / str(books)))
        found.append({name: score["bits_per_byte"] for name, score in told.by_domain.items()})
        assert 0.8e6 < told.parameters < 1.2e6
        assert told.tokens > 0.98 * 70 * 8 * 255
    books, code = ([told[name] for told in found] for name in ("books", "code"))
    assert books[0] > books[1] > books[2]
    assert code[0] < code[1] < code[2]
    assert books[0] - books[2] > 0.2
    assert code[2] - code[0] > 0.2
