"""The names of engines and of what they favour."""

from __future__ import annotations

from typing import Literal

Engine = Literal["trafilatura", "resiliparse"]
Favor = Literal["precision", "balanced", "recall"]
