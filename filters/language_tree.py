"""The Huffman tree of fastText's hierarchical softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Tree(NamedTuple):
    """Labels are nodes 0..k-1; inner node k + i has children left[i] and right[i] and the logistic weights output[i].

    A child's number is below its parent's, so one walk from the top down fills in all scores.
    left, right: int32[k - 1]; output: float32[k - 1, d].
    """

    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    output: npt.NDArray[np.float32]


def huffman(counts: Sequence[int], output: npt.NDArray[np.float32]) -> Tree:
    """The tree over labels with these counts (sorted from the most frequent down, as fastText stores them)."""
    labels = len(counts)
    weights = list(counts)
    left: list[int] = []
    right: list[int] = []
    leaf, inner = labels - 1, labels
    for _ in range(labels - 1):
        pair = []
        for _ in range(2):
            # The lighter of the next label and the next inner node; on a tie the inner node, as fastText has it.
            if leaf >= 0 and (inner >= len(weights) or weights[leaf] < weights[inner]):
                pair.append(leaf)
                leaf -= 1
            else:
                pair.append(inner)
                inner += 1
        left.append(pair[0])
        right.append(pair[1])
        weights.append(weights[pair[0]] + weights[pair[1]])
    return Tree(np.array(left, np.int32), np.array(right, np.int32), output[: labels - 1].copy())
