"""A keyed bijection of the numbers 0 .. n - 1, and its inverse: any order of blocks without a list of them.

A Feistel network over the smallest power of two that holds n, walked until it lands below n (Black and Rogaway 2002,
"Ciphers with arbitrary finite domains"): fewer than two walks on average from 32 numbers on. It orders data; it hides
nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash

from text import inlined, kernel

ROUNDS = 8
LEAST_BITS = 6  # a smaller network prefers some orders of 5 numbers by a tenth
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ONE, LEFT = np.uint64(1), np.uint64(31)


def key_of(*parts: object) -> np.uint64:
    """A key from whatever names a thing: seed, domain, purpose."""
    return np.uint64(xxhash.xxh3_64_intdigest("\0".join(str(part) for part in parts).encode()))


@inlined
def mixed(value: Any) -> Any:
    """splitmix64's finaliser: each bit of a uint64 depends on all of it."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> LEFT)


@kernel
def key_at(key: Any, number: int) -> Any:
    """The key of one of many: an epoch, a window."""
    return mixed(key + mixed((np.uint64(number) + ONE) * GOLDEN))


def numbered_key(key: np.uint64, number: int) -> np.uint64:
    """`key_at` as a number that kernels take: called from Python, they give an int."""
    return np.uint64(key_at(key, number))


@inlined
def _halves(count: int) -> Any:
    """Bits of the low and of the high half of the network that holds `count` numbers."""
    bits = LEAST_BITS
    while (1 << bits) < count:
        bits += 1
    low = bits // 2
    return np.uint64(low), np.uint64(bits - low)


@kernel
def permute(number: int, count: int, key: Any) -> int:
    """Where the order given by `key` has the number that stands at place `number`: 0 <= number < count."""
    low, high = _halves(count)
    low_mask, high_mask = (ONE << low) - ONE, (ONE << high) - ONE
    value = np.uint64(number)
    while True:
        left, right = value >> low, value & low_mask
        for turn in range(ROUNDS):
            round_key = key + np.uint64(turn + 1) * GOLDEN
            if turn % 2 == 0:
                left ^= mixed(round_key ^ mixed(right + round_key)) & high_mask
            else:
                right ^= mixed(round_key ^ mixed(left + round_key)) & low_mask
        value = (left << low) | right
        if value < np.uint64(count):
            return int(value)


@kernel
def unpermute(number: int, count: int, key: Any) -> int:
    """The place at which `permute` has `number`."""
    low, high = _halves(count)
    low_mask, high_mask = (ONE << low) - ONE, (ONE << high) - ONE
    value = np.uint64(number)
    while True:
        left, right = value >> low, value & low_mask
        for back in range(ROUNDS):
            turn = ROUNDS - 1 - back
            round_key = key + np.uint64(turn + 1) * GOLDEN
            if turn % 2 == 0:
                left ^= mixed(round_key ^ mixed(right + round_key)) & high_mask
            else:
                right ^= mixed(round_key ^ mixed(left + round_key)) & low_mask
        value = (left << low) | right
        if value < np.uint64(count):
            return int(value)


@kernel
def deal(count: int, key: Any, order: Any) -> None:
    """Fill order[0 .. count] with the permutation."""
    for number in range(count):
        order[number] = permute(number, count, key)
