"""A verdict in this process, and which verifier a kind is."""

from __future__ import annotations

import importlib
import time
from dataclasses import replace
from functools import cache
from typing import Any

from synth.errors import SynthError
from synth.verdicts import Verdict
from synth.verifiers import VERIFIERS
from synth.verifiers.verifier import Verifier


@cache
def load(kind: str) -> Verifier:
    """The verifier of a kind. Raises SynthError, with the kinds there are, for another."""
    if kind not in VERIFIERS:
        raise SynthError(f"verifier {kind!r}: no such kind; there are {', '.join(sorted(VERIFIERS))}")
    module, name = VERIFIERS[kind].split(":")
    verifier: Verifier = getattr(importlib.import_module(module), name)()
    return verifier


def version(kind: str) -> str:
    """Of a kind's verifier, for Check.key: verdicts of another version are not used again."""
    return load(kind).version


def verify(kind: str, gold: Any, answer: str, **options: Any) -> Verdict:
    """The verdict of one check in this process. Raises SynthError for an unknown kind or option, as both are a
    recipe's mistake and no answer's."""
    began = time.perf_counter()
    verdict = load(kind).verify(gold, answer, options)
    return replace(verdict, seconds=time.perf_counter() - began)
