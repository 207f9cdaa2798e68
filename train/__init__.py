"""Tokenise, pack, plan, train, export, and know what a training run costs.

Tokens                                  the recipe's `tokens:` section: documents to token shards
train_tokenizer(batches, vocab_size=)   a byte-level BPE Tokenizer trained on texts
load_tokenizer(path)                    a Tokenizer from a tokenizer.json, a sentencepiece model or a tiktoken file
Tokenizer.encode(texts), .decode(ids)   text as text: never a control token
TokenShards.open(folders)               token shards to read
Plan.new(shards, ...)                   which tokens are trained on when: .batch(step, rank, world_size) -> spans
Loader(plan, shards, ...)               its steps as batches, from any step, by any number of processes
Pretrain                                the recipe's `train:` section; train.pretrain.run does it
Sft                                     fine-tuning on conversations; train.sft.run does it
Proxies                                 small models on many mixtures; train.proxies.run gives a table of observations
compare(tokenizers, texts)              tokens a byte, fertility, vocabulary used, by domain and language
budget(flops=, ...)                     what a run costs and what it buys
export(out, to, destination)            token shards and documents as other programs' files
compile()                               build every kernel now, so that no worker does
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.compute import budget
    from train.exports import export
    from train.feed.loader import Loader
    from train.feed.plan import Plan
    from train.feed.token_shards import TokenShards
    from train.pretrain import Pretrain
    from train.proxies import Proxies
    from train.sft import Sft
    from train.tokenise.bpe import train_tokenizer
    from train.tokenise.comparing import compare
    from train.tokenise.compiled import compile
    from train.tokenise.tokenizer import Tokenizer, load_tokenizer
    from train.tokenise.tokens import Tokens

__all__ = [
    "Loader",
    "Plan",
    "Pretrain",
    "Proxies",
    "Sft",
    "TokenShards",
    "Tokenizer",
    "Tokens",
    "budget",
    "compare",
    "compile",
    "export",
    "load_tokenizer",
    "train_tokenizer",
]

_HOMES = {
    "Loader": "train.feed.loader",
    "Plan": "train.feed.plan",
    "Pretrain": "train.pretrain",
    "Proxies": "train.proxies",
    "Sft": "train.sft",
    "TokenShards": "train.feed.token_shards",
    "Tokenizer": "train.tokenise.tokenizer",
    "Tokens": "train.tokenise.tokens",
    "budget": "train.compute",
    "compare": "train.tokenise.comparing",
    "compile": "train.tokenise.compiled",
    "export": "train.exports",
    "load_tokenizer": "train.tokenise.tokenizer",
    "train_tokenizer": "train.tokenise.bpe",
}


def __getattr__(name: str) -> Any:
    # numba and pydantic take a second to import, and `gristmill --help` needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module 'train' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
