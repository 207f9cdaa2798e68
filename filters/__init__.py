"""One document at a time: which address, which language, how good, what must not be in it.

Url, Language, Quality, Redact       the steps; each object is its settings
identify(texts)                      Table(language, score)
measure(texts)                       a column a signal of the text
judge(signals, rules=[...])          Table(kept, rule, value, threshold)
explain(text)                        every signal, rule, value and threshold of one text
redact(texts)                        Table(text, spans), spans in code points of the original
compile()                            build every kernel now, so that no worker does
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from filters.compiled import compile
    from filters.language import Language, identify
    from filters.quality import Quality, explain, judge
    from filters.redaction import Redact, redact
    from filters.signals import measure
    from filters.url import Url

__all__ = ["Language", "Quality", "Redact", "Url", "compile", "explain", "identify", "judge", "measure", "redact"]

_HOMES = {
    "Language": "filters.language",
    "Quality": "filters.quality",
    "Redact": "filters.redaction",
    "Url": "filters.url",
    "compile": "filters.compiled",
    "explain": "filters.quality",
    "identify": "filters.language",
    "judge": "filters.quality",
    "measure": "filters.signals",
    "redact": "filters.redaction",
}


def __getattr__(name: str) -> Any:
    # Models and compiled kernels load with the module that needs them, not with `gristmill --help`.
    if name not in _HOMES:
        raise AttributeError(f"module 'filters' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
