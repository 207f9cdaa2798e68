"""Published rules of thumb in compute alone, for a second opinion beside the laws, with the traps of their rounding."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeepSeekRule:
    """flops_per_token: M, non-embedding FLOPs of a training token (72 L d^2 + 12 L d T), so that C = M D."""

    flops_per_token: float
    tokens: float
    learning_rate: float
    batch_tokens: float


def deepseek(flops: float) -> DeepSeekRule:
    """Optimal model scale, data, peak learning rate and batch. Source: DeepSeek LLM 2024, arXiv:2401.02954, fitted
    on its own data."""
    return DeepSeekRule(
        flops_per_token=0.1715 * flops**0.5243,
        tokens=5.8316 * flops**0.4757,
        learning_rate=0.3118 * flops**-0.1250,
        batch_tokens=0.2920 * flops**0.3271,
    )


def llama3_tokens(flops: float) -> float:
    """0.29 C^0.53, as printed in arXiv:2407.21783, section 3.2.1. Never plan from it: at 3.8e25 FLOPs the paper says
    16.55T tokens, and these rounded constants give 10.5T."""
    return float(0.29 * flops**0.53)


def ladder(parameters: float) -> tuple[float, float]:
    """(batch in tokens, peak learning rate) for a model of that size. Source: the model ladder of OLMo-core, from 108M
    parameters: batch 2048 * 160 * (N / 108M)^(2/3), rate 0.0047 * (N / 108M)^(-1/3) / 2."""
    scale = parameters / 108e6
    return 2048 * 160 * scale ** (2 / 3), 0.0047 * scale ** (-1 / 3) / 2
