"""Supervised fine-tuning: conversations to ids and masks, verified; packed; a model trained on the answers.

Sft, Chat, Lora                        settings
Reading.outcomes(rows of Raw)          ids and masks of rows in memory, or why a row is refused
run(settings, model=, data=, out=)     fine-tune a Hugging Face Llama-layout model -> FineTuned
prepare(sources, reading, out, ...)    rows to examples on disk, with the account of every row (no torch needed)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.sft.encoding import load_chat_tokenizer
    from train.sft.preparing import Reading, Sources, prepare
    from train.sft.refusals import SftError
    from train.sft.results import FineTuned
    from train.sft.rows import Raw
    from train.sft.settings import Chat, Lora, Sft
    from train.sft.training import run

__all__ = [
    "Chat",
    "FineTuned",
    "Lora",
    "Raw",
    "Reading",
    "Sft",
    "SftError",
    "Sources",
    "load_chat_tokenizer",
    "prepare",
    "run",
]

_HOMES = {
    "Chat": "train.sft.settings",
    "FineTuned": "train.sft.results",
    "Lora": "train.sft.settings",
    "Raw": "train.sft.rows",
    "Reading": "train.sft.preparing",
    "Sft": "train.sft.settings",
    "SftError": "train.sft.refusals",
    "Sources": "train.sft.preparing",
    "load_chat_tokenizer": "train.sft.encoding",
    "prepare": "train.sft.preparing",
    "run": "train.sft.training",
}


def __getattr__(name: str) -> Any:
    # torch takes seconds to import, and settings need none of it.
    if name not in _HOMES:
        raise AttributeError(f"module 'train.sft' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
