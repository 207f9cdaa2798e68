"""Causal attention that stays inside documents: packed rows behave as if each document were alone.

On CUDA a block mask lets flex_attention skip what is masked; elsewhere scaled_dot_product_attention takes a boolean
mask. A row's padding (document -1) counts as one more document: each of its slots sees itself, so none is NaN, and no
document sees it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

# None is plain causal attention.
Isolation: TypeAlias = Tensor | BlockMask | None
FLEX_HEAD_WIDTH = 16  # the narrowest head that torch's compiled flex_attention takes
Kernel = Literal["auto", "flex", "sdpa"]

_plain_flex: Callable[..., Any] = flex_attention


def isolation(documents: Tensor | None, kernel: Kernel = "auto") -> Isolation:
    """The mask of a batch, made once and used by every layer.

    documents: int[b, L], the number of the document in its row at each slot, -1 for padding; None is one document a
    row. Rows that hold one document each get plain causal attention, which is faster (not looked at on CUDA, where
    looking would wait for the device, nor while compiling). kernel: auto is flex on CUDA and sdpa elsewhere.
    """
    if documents is None:
        return None
    if kernel == "flex" or (kernel == "auto" and documents.is_cuda):
        return _block_mask(documents)
    if not torch.compiler.is_compiling() and not documents.is_cuda and bool((documents == documents[:, :1]).all()):
        return None
    same = documents[:, :, None] == documents[:, None, :]
    return same.tril().unsqueeze(1)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Isolation, scale: float) -> Tensor:
    """softmax(scale * query key^T) value within the mask.

    query: [b, heads, L, d]; key, value: [b, key_value_heads, L, d]; query head i uses group i // (heads / groups).
    """
    grouped = query.shape[1] != key.shape[1]
    if isinstance(mask, BlockMask):
        flex = _flex() if query.is_cuda and not torch.compiler.is_compiling() else _plain_flex
        return cast(Tensor, flex(query, key, value, block_mask=mask, scale=scale, enable_gqa=grouped))
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=mask is None, scale=scale, enable_gqa=grouped
    )


def _block_mask(documents: Tensor) -> BlockMask:
    rows, slots = documents.shape

    def visible(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query >= key) & (documents[row, query] == documents[row, key])

    make = _compiled_block_mask() if documents.is_cuda and not torch.compiler.is_compiling() else create_block_mask
    mask: BlockMask = make(visible, B=rows, H=None, Q_LEN=slots, KV_LEN=slots, device=documents.device)
    return mask


@functools.cache
def _flex() -> Callable[..., Any]:
    # Uncompiled, flex_attention writes out all L x L scores.
    return torch.compile(flex_attention, dynamic=False)


@functools.cache
def _compiled_block_mask() -> Callable[..., Any]:
    # Uncompiled, create_block_mask writes out all L x L entries of the mask.
    return torch.compile(create_block_mask, dynamic=False)
