"""The model: RMSNorm, rotary positions, grouped queries, SwiGLU; no biases; tied embeddings or not.

The layout and the names of parameters are those of Hugging Face's Llama (Touvron et al. 2023, arXiv:2302.13971), so
that checkpoints go both ways unchanged. It compiles as one graph, whole or layer by layer.
"""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from train.model.attention import FLEX_HEAD_WIDTH, Isolation, Kernel, attend, isolation
from train.model.settings import ModelSettings

Rotation = tuple[Tensor, Tensor]


class Matrix(nn.Linear):
    """A linear map whose weights the model sets, so that building it draws nothing from torch's global generator."""

    def reset_parameters(self) -> None:
        pass


class Table(nn.Embedding):
    """An embedding whose weights the model sets."""

    def reset_parameters(self) -> None:
        pass


class RMSNorm(nn.Module):
    """Divide by the root mean square over the width, in fp32 at least, and scale (Zhang and Sennrich 2019)."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, hidden: Tensor) -> Tensor:
        wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        normal = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + self.epsilon)
        return self.weight * normal.to(hidden.dtype)


class Attention(nn.Module):
    """Grouped-query attention (Ainslie et al. 2023) with rotary positions."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        shape, bias = settings.shape, settings.query_key_value_bias
        self.head_width = shape.head_width
        self.scale = settings.attention_scale
        self.q_proj = Matrix(shape.width, shape.heads * shape.head_width, bias=bias)
        self.k_proj = Matrix(shape.width, shape.key_value_heads * shape.head_width, bias=bias)
        self.v_proj = Matrix(shape.width, shape.key_value_heads * shape.head_width, bias=bias)
        self.o_proj = Matrix(shape.heads * shape.head_width, shape.width, bias=False)

    def forward(self, hidden: Tensor, rotation: Rotation, mask: Isolation) -> Tensor:
        query, key, value = (
            projection(hidden).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = attend(rotate(query, rotation), rotate(key, rotation), value, mask, self.scale)
        return cast(Tensor, self.o_proj(out.transpose(1, 2).flatten(-2)))


class FeedForward(nn.Module):
    """SwiGLU (Shazeer 2020): down(silu(gate x) * up x)."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        width, inner = settings.shape.width, settings.shape.feed_forward_width
        self.gate_proj = Matrix(width, inner, bias=False)
        self.up_proj = Matrix(width, inner, bias=False)
        self.down_proj = Matrix(inner, width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return cast(Tensor, self.down_proj(F.silu(self.gate_proj(hidden)) * self.up_proj(hidden)))


class Layer(nn.Module):
    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(settings.width, settings.norm_epsilon)
        self.self_attn = Attention(settings)
        self.post_attention_layernorm = RMSNorm(settings.width, settings.norm_epsilon)
        self.mlp = FeedForward(settings)

    def forward(self, hidden: Tensor, rotation: Rotation, mask: Isolation) -> Tensor:
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), rotation, mask)
        return cast(Tensor, hidden + self.mlp(self.post_attention_layernorm(hidden)))


class Transformer(nn.Module):
    """A causal language model; forward gives logits.

    seed: of the weights at the start; None leaves them unset (to be loaded, or under torch.device("meta") to be made
    with to_empty and initialise). checkpoint_activations: keep only each layer's input for the backward pass and
    compute the rest again. logits_in_fp32: the readout in fp32 whatever the autocast. attention_kernel: see isolation.
    """

    def __init__(self, settings: ModelSettings, *, seed: int | None = 0) -> None:
        super().__init__()
        shape = settings.shape
        self.settings = settings
        self.checkpoint_activations = False
        self.logits_in_fp32 = False
        self.attention_kernel: Kernel = "auto"
        self.embed_tokens = Table(shape.vocab_size, shape.width)
        self.layers = nn.ModuleList(Layer(settings) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.width, settings.norm_epsilon)
        self.lm_head = Matrix(shape.width, shape.vocab_size, bias=False)
        self.tie()
        if seed is not None:
            self.initialise(seed)

    def tie(self) -> None:
        """Make a tied readout the embedding's own tensor; again after to_empty, which makes two tensors of one."""
        if self.settings.tie_embeddings:
            self.lm_head.weight = self.embed_tokens.weight

    @torch.no_grad()
    def initialise(self, seed: int) -> None:
        """Set every weight: the same seed and shape give the same weights, whatever was drawn before. Before sharding.

        Hidden matrices: normal, deviation 1/sqrt(fan in) (LeCun et al. 1998; muP's table 8 asks for variance 1/fan in
        too), the two that write to the residual stream divided by sqrt(2 layers) (Radford et al. 2019, GPT-2, section
        2.3). Embedding and readout: settings.initial_deviation (or zero_readout). Norms 1, biases 0.
        """
        self.tie()
        generator = torch.Generator(self.embed_tokens.weight.device).manual_seed(seed)
        residual = 1 / math.sqrt(2 * self.settings.layers)
        for name, weight in self.named_parameters():
            if weight.ndim < 2:
                weight.fill_(1.0 if "norm" in name else 0.0)
            elif name.startswith("lm_head") and self.settings.zero_readout:
                weight.zero_()
            elif name.startswith(("embed_tokens", "lm_head")):
                weight.normal_(0, self.settings.initial_deviation, generator=generator)
            else:
                scale = residual if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
                weight.normal_(0, scale / math.sqrt(weight.shape[1]), generator=generator)

    def forward(self, tokens: Tensor, positions: Tensor | None = None, documents: Tensor | None = None) -> Tensor:
        """Logits [b, L, vocab] of the token after each slot.

        tokens: int64[b, L]. positions: int[b, L], from 0 in each document (None: 0 .. L-1 in each row).
        documents: int[b, L], see attention.isolation (None: each row is one document).
        """
        hidden = self.norm(self.residual(tokens, positions, documents)) * self.settings.output_multiplier
        if not self.logits_in_fp32:
            return cast(Tensor, self.lm_head(hidden))
        with torch.autocast(hidden.device.type, enabled=False):
            return F.linear(hidden.float(), self.lm_head.weight.float())

    def residual(self, tokens: Tensor, positions: Tensor | None = None, documents: Tensor | None = None) -> Tensor:
        """The residual stream [b, L, width] after the last layer, before the final norm."""
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        small = self.settings.shape.head_width < FLEX_HEAD_WIDTH
        mask = isolation(documents, "sdpa" if small and self.attention_kernel == "auto" else self.attention_kernel)
        hidden = self.embed_tokens(tokens)
        cosine, sine = rotation_of(positions, self.settings)
        rotation = (cosine.to(hidden.dtype), sine.to(hidden.dtype))
        for layer in self.layers:
            if self.checkpoint_activations and torch.is_grad_enabled():
                hidden = checkpoint(layer, hidden, rotation, mask, use_reentrant=False)
            else:
                hidden = layer(hidden, rotation, mask)
        return cast(Tensor, hidden)


def rotation_of(positions: Tensor, settings: ModelSettings) -> Rotation:
    """Cosine and sine, fp32 [b or 1, 1, L, head_width], of each slot's angles; computed, not stored, so that no cast
    of the model to bf16 can round the frequencies."""
    frequencies = rotary_frequencies(settings, positions.device)
    angles = positions.to(torch.float32)[:, None, :, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotary_frequencies(settings: ModelSettings, device: torch.device | None = None) -> Tensor:
    """Radians a position, fp32 [head_width / 2], stretched as RopeScaling says."""
    head = settings.shape.head_width
    exponents = torch.arange(0, head, 2, device=device, dtype=torch.float32) / head
    frequencies = 1.0 / (settings.rope_theta**exponents)
    scaling = settings.rope_scaling
    if scaling is None:
        return frequencies
    turns = scaling.original_max_positions * frequencies / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def rotate(vectors: Tensor, rotation: Rotation) -> Tensor:
    """Turn [b, heads, L, d] by its slots' angles; dimension i is paired with i + d/2, as in Hugging Face's Llama."""
    cosine, sine = (part.to(vectors.dtype) for part in rotation)
    first, second = vectors.chunk(2, dim=-1)
    return vectors * cosine + torch.cat((-second, first), dim=-1) * sine
