"""math-verify's verdict, asked both ways round. Only ever called where a process may be killed: sympy can hang.

Source: https://github.com/huggingface/Math-Verify, 0.9. Its own time limits are off: they work by SIGALRM in a main
thread, and a worker's are outside of it.
"""

from __future__ import annotations

import logging
from typing import Any

# Both warn at each call that their time limits are off.
for _name in ("math_verify.parser", "math_verify.grader"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


def math_verify_says(gold: str, answer: str) -> bool | None:
    """Whether math-verify holds two formulas for the same, whichever is the gold; None where it reads either not at
    all. It reads a part of many a text and drops the rest, so a yes of one direction is not enough."""
    first, second = _parsed(gold), _parsed(answer)
    if not first or not second:
        return None
    from math_verify import verify

    try:
        return bool(
            verify(first, second, float_rounding=12, timeout_seconds=None, raise_on_error=True)
            and verify(second, first, float_rounding=12, timeout_seconds=None, raise_on_error=True)
        )
    except MemoryError:
        raise
    except Exception:
        return None


def _parsed(text: str) -> list[Any]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse

    wrapped = text if "$" in text or "\\boxed" in text else f"${text}$"
    try:
        return list(parse(wrapped, [LatexExtractionConfig(), ExprExtractionConfig()], parsing_timeout=None))
    except MemoryError:
        raise
    except Exception:
        return []
