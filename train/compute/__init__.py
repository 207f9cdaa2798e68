"""What a training run costs and what it buys: scaling laws, repetition, FLOPs, accelerators, one budget.

budget(flops=... | parameters=..., tokens=... | loss=...)   a Budget: plans, FLOPs, hours, epochs a domain; table,
JSON, plot parse_number("1.3B")                                        1.3e9, as the command line takes numbers
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from train.compute.accelerators import ACCELERATORS, Accelerator
    from train.compute.budgets import Budget, budget
    from train.compute.flops import ModelShape
    from train.compute.laws import LAWS, Law
    from train.compute.numbers import BudgetError, parse_number

__all__ = [
    "ACCELERATORS",
    "LAWS",
    "Accelerator",
    "Budget",
    "BudgetError",
    "Law",
    "ModelShape",
    "budget",
    "parse_number",
]

_HOMES = {
    "ACCELERATORS": "train.compute.accelerators",
    "Accelerator": "train.compute.accelerators",
    "Budget": "train.compute.budgets",
    "budget": "train.compute.budgets",
    "BudgetError": "train.compute.numbers",
    "parse_number": "train.compute.numbers",
    "LAWS": "train.compute.laws",
    "Law": "train.compute.laws",
    "ModelShape": "train.compute.flops",
}


def __getattr__(name: str) -> Any:
    # numpy and pydantic are not needed to print a help page.
    if name not in _HOMES:
        raise AttributeError(f"module 'train.compute' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
