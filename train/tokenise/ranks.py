"""tiktoken files: a line a token, base64 of its bytes and its rank. They tell no pattern and no special tokens.

tiktoken takes a piece that is a token as it is, and merges adjacent parts of any other in order of the rank of what
they make. The library `tokenizers` merges pairs in an order of its own, so each way to make a token of two others
becomes a merge, in order of the token's rank.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from train.tokenise.patterns import PatternError, translated

MOST_HOLES = 1 << 16  # ids without a token, between the last rank and the last special token
GPT_2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT = r"(?i:'[sdmt]|'ll|'ve|'re)?"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a file of this name leaves unsaid. ranks: how many it has, by which a namesake is told apart."""

    ranks: int
    pattern: str
    special_tokens: Mapping[str, int] = field(default_factory=dict)


_END = "<|endoftext|>"
_MIDDLE = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_HARMONY = {
    "<|startoftext|>": 199998, _END: 199999, "<|return|>": 200002, "<|constrain|>": 200003, "<|channel|>": 200005,
    "<|start|>": 200006, "<|end|>": 200007, "<|message|>": 200008, "<|call|>": 200012, "<|endofprompt|>": 200018,
}  # fmt: skip
# SOURCE: tiktoken 0.14, tiktoken_ext/openai_public.py: ids and, in another dialect, patterns.
KNOWN = {
    "gpt2": Known(ranks=50256, pattern=GPT_2, special_tokens={_END: 50256}),
    "r50k_base": Known(ranks=50256, pattern=GPT_2, special_tokens={_END: 50256}),
    "p50k_base": Known(ranks=50280, pattern=GPT_2, special_tokens={_END: 50256}),
    "p50k_edit": Known(
        ranks=50280, pattern=GPT_2, special_tokens={_END: 50256, **dict(zip(_MIDDLE, range(50281, 50284), strict=True))}
    ),
    "cl100k_base": Known(
        ranks=100256,
        pattern=CL100K,
        special_tokens={
            _END: 100257, **dict(zip(_MIDDLE, range(100258, 100261), strict=True)), "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": Known(ranks=199998, pattern=O200K, special_tokens={_END: 199999, "<|endofprompt|>": 200018}),
    "o200k_harmony": Known(
        ranks=199998,
        pattern=O200K,
        special_tokens=_HARMONY
        | {
            f"<|reserved_{number}|>": number
            for number in range(200000, 201088)
            if number not in _HARMONY.values()
        },
    ),
}  # fmt: skip


def is_ranks(data: bytes) -> bool:
    """Whether a file looks like ranks: its first line is base64 and a number."""
    try:
        _line(data[:4096].split(b"\n", 1)[0])
    except ValueError:
        return False
    return True


def read_ranks(data: bytes) -> dict[bytes, int]:
    """{token: rank}. Raises ValueError, which names the line, for what is no such file."""
    ranks: dict[bytes, int] = {}
    taken: set[int] = set()
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = _line(line)
            if token in ranks or rank in taken:
                raise ValueError("a token or a rank that was there before")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        ranks[token] = rank
        taken.add(rank)
    lacking = 256 - sum(bytes([byte]) in ranks for byte in range(256))
    if lacking:
        raise ValueError(f"{lacking} of the 256 bytes have no rank, so not every text can be encoded")
    return ranks


def _line(line: bytes) -> tuple[bytes, int]:
    parts = line.split()
    if len(parts) != 2 or not parts[1].isdigit() or len(parts[1]) > 9:
        raise ValueError("not base64 and a rank")
    try:
        token = base64.b64decode(parts[0], validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
    if not token:
        raise ValueError("an empty token")
    return token, int(parts[1])


def from_ranks(
    ranks: Mapping[bytes, int], *, name: str, pattern: str | None, special_tokens: Mapping[str, int] | Sequence[str]
) -> Any:
    """A `tokenizers.Tokenizer` that encodes as tiktoken does, byte for byte.

    name: of the file without its suffix, for what is known of it. pattern: as tiktoken is given it. special_tokens:
    {name: id}, or names that get the ids behind the others. Raises ValueError for what cannot be.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    known = KNOWN.get(name)
    known = known if known is not None and known.ranks == len(ranks) else None
    if pattern is None and known is None:
        raise ValueError(f"a tiktoken file holds no pattern, and only that of {', '.join(KNOWN)} is known; set pattern")
    try:
        split = Regex(known.pattern if known is not None and pattern is None else translated(pattern or ""))
    except PatternError as error:
        raise ValueError(f"pattern: {error}") from error
    except Exception as error:  # the library has no error class of its own
        raise ValueError(f"pattern: {error}") from error
    added = _added(ranks, special_tokens, known.special_tokens if known is not None else {})
    vocab = {printed(token): rank for token, rank in ranks.items()}
    last = max(ranks.values())
    if max(added.values(), default=0) - last > MOST_HOLES or last + 1 - len(ranks) > MOST_HOLES:
        raise ValueError(f"special_tokens: more than {MOST_HOLES} ids between the others would stand for nothing")
    names = {number: content for content, number in added.items()}
    # The library counts ids up, so those without a token get one; a space is no printed byte, so no text becomes it.
    for number in sorted(set(range(last)) - set(ranks.values())):
        vocab[names.get(number, f"unused {number}")] = number
    made = Tokenizer(models.BPE(vocab, _merges(ranks), ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(split, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    made.decoder = decoders.ByteLevel()
    behind = [names.get(number, f"<|unused {number}|>") for number in range(last + 1, max([last, *names]) + 1)]
    inside = [content for content, number in added.items() if number < last]
    made.add_special_tokens([AddedToken(content, normalized=False, special=True) for content in inside + behind])
    wrong = [content for content, number in added.items() if made.token_to_id(content) != number]
    if wrong:
        raise ValueError(f"special_tokens: {wrong[0]!r} cannot have the id {added[wrong[0]]}")
    return made


def _added(
    ranks: Mapping[bytes, int], asked: Mapping[str, int] | Sequence[str], known: Mapping[str, int]
) -> dict[str, int]:
    added = dict(known)
    if isinstance(asked, Mapping):
        added |= asked
    else:
        behind = max([*ranks.values(), *added.values()]) + 1
        added |= {
            content: behind + number for number, content in enumerate(dict.fromkeys(asked)) if content not in known
        }
    numbers = sorted(added.values())
    taken = set(ranks.values())
    for one, other in zip([-1, *numbers], numbers, strict=False):
        if one == other or other in taken:
            raise ValueError(f"special_tokens: two tokens would have the id {other}")
    return added


def _merges(ranks: Mapping[bytes, int]) -> list[tuple[str, str]]:
    found = []
    for token, rank in ranks.items():
        for cut in range(1, len(token)):
            left, right = ranks.get(token[:cut]), ranks.get(token[cut:])
            if left is not None and right is not None:
                found.append((rank, left, right, token[:cut], token[cut:]))
    found.sort()
    return [(printed(left), printed(right)) for *_, left, right in found]


def _alphabet() -> list[str]:
    """How the library prints bytes: those that Latin-1 can print as themselves, the others from U+0100 on."""
    own = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in own else next(others)) for byte in range(256)]


_PRINTED = _alphabet()


def printed(token: bytes) -> str:
    return "".join([_PRINTED[byte] for byte in token])
