"""What a user did wrong, said in one line: `where: what is wrong; what would be right; the next command`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class UserError(Exception):
    """A mistake that its maker can mend. The message is one line and reaches the terminal without a traceback.

    exit_code: 2 for a wrong use (the default), 1 for work that failed.
    """

    def __init__(self, message: str, *, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class MistakesError(UserError):
    """All mistakes of a recipe at once, a line each, in the order of the file."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = tuple(mistakes)


def nearest(name: str, names: Iterable[str], *, what: str = "known", most: int = 20) -> str:
    """The end of a message about an unknown name: `did you mean 'x'?`, or the known names when none is near."""
    known = sorted(set(names))
    close = difflib.get_close_matches(name.casefold(), [other.casefold() for other in known], n=1)
    if close:
        return f"did you mean {next(other for other in known if other.casefold() == close[0])!r}?"
    if not known:
        return f"{what}: none"
    more = f", and {len(known) - most} more" if len(known) > most else ""
    return f"{what}: {', '.join(known[:most])}{more}"
