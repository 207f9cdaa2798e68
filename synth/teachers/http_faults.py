"""What went wrong with an attempt, what that says of the server, and how long to wait before the next."""

from __future__ import annotations

import email.utils
import time
from dataclasses import dataclass
from typing import Final, Literal

from synth.requests import digest
from synth.teachers.http_bodies import too_long
from synth.teachers.settings import TeacherSettings

MAX_RETRY_AFTER_SECONDS: Final = 3600.0
OVERLOADED: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
REFUSED: Final = frozenset({400, 413, 422})
"""What is wrong with one request. Other 4xx (a key, a model's name) are about all of them, and mended elsewhere."""


@dataclass(kw_only=True, eq=False)
class Fault(Exception):
    """An attempt that gave no reply. overload: the server has, or may have, too much to do. health: what it says of the
    server. refused: it says the same of each attempt. pause_seconds: what the server asks for."""

    stage: str
    error: str
    overload: bool = True
    health: Literal["well", "doubtful", "ill"] = "doubtful"
    refused: bool = False
    pause_seconds: float = 0.0


def fault_of(status: int, raw: bytes, retry_after: str) -> Fault:
    """Of an answer of another status than 200. Its body is read for one thing, whether the prompt was too long."""
    if status in REFUSED:
        long = too_long(raw)
        told = f"HTTP {status}: the prompt and max_tokens do not fit the model's context" if long else f"HTTP {status}"
        return Fault(stage="prompt" if long else "refused", error=told, overload=False, health="well", refused=True)
    health: Literal["well", "doubtful"] = "well" if status == 429 else "doubtful"
    overload, pause = status in OVERLOADED, retry_after_seconds(retry_after)
    return Fault(stage="wait", error=f"HTTP {status}", overload=overload, health=health, pause_seconds=pause)


def retry_after_seconds(retry_after: str) -> float:
    """Of a Retry-After header: seconds or a date (RFC 9110, 10.2.3); 0 for neither."""
    if retry_after.isascii() and retry_after.strip().isdigit():
        return min(float(retry_after), MAX_RETRY_AFTER_SECONDS)
    try:
        when = email.utils.parsedate_to_datetime(retry_after).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(0.0, when - time.time()), MAX_RETRY_AFTER_SECONDS)


def pause_seconds(settings: TeacherSettings, key: str, failed: int, last: Fault) -> float:
    """Seconds before the next attempt: doubled each time, of which a half is spread by the key, so that requests that
    failed together do not come back together; or what the server asked for, a little spread as well."""
    spread = int(digest([key, failed])[:8], 16) / 0xFFFFFFFF
    backoff = min(settings.backoff_max_seconds, settings.backoff_seconds * 2.0 ** min(failed - 1, 30))
    if last.pause_seconds:
        return last.pause_seconds + settings.backoff_seconds * spread / 2
    return backoff * (0.5 + spread / 2)
