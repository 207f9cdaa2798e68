"""Writes redact_tlds.txt: the top-level domains of the DNS root. To renew: `python -m filters.redact_make_tlds`.

Source: IANA's root zone, as the one-label entries of the Public Suffix List that the tldextract package carries; names
of other alphabets stand in Unicode and in punycode.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_NO_MAIL = {"arpa", "onion"}
_PRIVATE = {"corp", "example", "home", "internal", "intranet", "invalid", "lan", "local", "localdomain", "test"}
"""Not in the root (RFC 6761, RFC 6762, draft-chapin-additional-reserved-tlds), but written in addresses of people."""


def build() -> list[str]:
    spec = find_spec("tldextract")
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).with_name(".tld_set_snapshot").read_text(encoding="utf-8")
    icann = text.partition("===BEGIN ICANN DOMAINS===")[2].partition("===END ICANN DOMAINS===")[0]
    lines = (line.split("//")[0].strip().lstrip("*.!") for line in icann.splitlines())
    names = {line.rpartition(".")[2] for line in lines if line} - _NO_MAIL | _PRIVATE
    return sorted(names | {name.encode("idna").decode() for name in names})


if __name__ == "__main__":
    names = build()
    Path(__file__).with_name("redact_tlds.txt").write_bytes("\n".join([*names, ""]).encode())
