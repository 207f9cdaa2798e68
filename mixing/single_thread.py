"""One thread of linear algebra while a law is fitted or a mixture is sought.

The matrices are small: several threads wait for each other more than they work, and on a busy machine two were seen to
be a hundred times slower than one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def single_threaded(work: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """The same function, with BLAS held to one thread while it runs."""

    @wraps(work)
    def alone(*arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        import scipy.linalg  # noqa: F401 - it brings a BLAS of its own, which must be there to be held
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, "blas"):
            return work(*arguments, **options)

    return alone
