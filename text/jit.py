"""How loops over buffers are compiled, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays that it is given: cached on disk, without the GIL, without reference counts.

    A kernel neither makes nor returns arrays: they are allocated by its caller. That lets numba leave out the atomic
    reference counts which it otherwise puts around each array that a helper is given: they were two thirds of the time
    of `tokenize`. Compiled for the types of its first call.
    """
    return numba.njit(cache=True, nogil=True, _nrt=False)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """A small helper of kernels, pasted into its callers."""
    return numba.njit(cache=True, nogil=True, inline="always", _nrt=False)(function)
