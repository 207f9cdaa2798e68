"""Fixtures shared by all rooms' tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# Read by numpy when it is loaded: small matrices and several test processes are slow with more.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent

# A shell that starts the tests behind "&" has them ignore interrupts, and all that they start and interrupt, too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real test data beside the project; tests that need it say so where it is absent."""
    folder = Path(os.environ.get("GRISTMILL_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        told = f"no real test data at {folder}: put the shared folder beside the project or set GRISTMILL_SHARED"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(told)
    return folder
