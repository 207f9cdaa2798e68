"""The table of laws: every name leads to a class that has that name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mixing.laws import LAWS, law_class
from mixing.laws.law import Law
from mixing.observations.points import MixingError


@pytest.mark.parametrize("name", sorted(LAWS))
def test_every_name_is_of_a_law_with_equation_and_source(name: str) -> None:
    found = law_class(name)
    assert issubclass(found, Law)
    assert found.name == name
    assert found.equation
    assert found.source


@pytest.mark.parametrize(
    ("name", "told"),
    [("sharedpower", "did you mean 'shared_power'"), ("zzz", "law: no 'zzz'; there are linear"), ("", "there are")],
)
def test_an_unknown_name_is_answered_with_near_ones(name: str, told: str) -> None:
    with pytest.raises(MixingError, match=told):
        law_class(name)


def test_the_table_imports_no_law() -> None:
    heavy = "scipy", "lightgbm", "torch", "mixing.laws.robust"
    code = f"import sys, mixing.laws; sys.exit(str([name for name in {heavy!r} if name in sys.modules]))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stderr.strip() == "[]"
