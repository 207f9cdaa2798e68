"""How loops over buffers are compiled, in one place."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays that it is given: cached on disk, without the GIL, without reference counts.

    A kernel neither makes nor returns arrays: they are allocated by its caller. That lets numba leave out the atomic
    reference counts which it otherwise puts around each array that a helper is given: they were two thirds of the time
    of `tokenize`. Compiled for the types of its first call.
    """
    return _dated(numba.njit(cache=True, nogil=True, _nrt=False)(function))


def inlined(function: Callable[..., Any]) -> Any:
    """A small helper of kernels, pasted into its callers."""
    return _dated(numba.njit(cache=True, nogil=True, inline="always", _nrt=False)(function))


def _dated(dispatcher: Any) -> Any:
    """Make the cached code depend on all modules that helpers may come from.

    numba looks at the time of the function's own file alone, and would go on using a kernel whose helper in another
    module has changed. Should its internals move, that is lost and nothing else.
    """
    index: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if index is not None and hasattr(index, "_source_stamp"):
        own = Path(inspect.getfile(dispatcher.py_func)).parent
        index._source_stamp = (index._source_stamp, _stamp(own), _stamp(Path(__file__).parent))
    return dispatcher


@cache
def _stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of a package's modules; nothing where it is read from a zip."""
    if not folder.is_dir():
        return ()
    found = [(path.name, path.stat()) for path in sorted(folder.glob("*.py"))]
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in found)
