"""Kernels are compiled before the tests, so that none of them is timed with it."""

from __future__ import annotations

import pytest

import text


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    text.compile()
