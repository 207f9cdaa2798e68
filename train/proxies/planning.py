"""Which runs a swarm has: mixtures x sizes x seeds, how long each is, and how much of each domain it may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from train.compute.flops import ModelShape
from train.compute.numbers import BudgetError
from train.proxies.mixtures import Mixture
from train.proxies.settings import Proxies, ProxyError, ProxySize


@dataclass(frozen=True, kw_only=True)
class ProxyRun:
    """One run. weights: of all domains. unique_tokens: what it may see of each; steps: its length in whole steps."""

    name: str
    mixture: str
    size_name: str
    seed: int
    size: ProxySize
    weights: Mapping[str, float]
    steps: int
    unique_tokens: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def runs_of(
    settings: Proxies, mixtures: Sequence[Mixture], trainable: Mapping[str, int], vocab_size: int
) -> tuple[ProxyRun, ...]:
    """Every run, cheapest sizes first, so that mistakes show early.

    trainable: tokens of each domain that are not held out. Raises ProxyError for weight on a domain without any.
    """
    for mixture in mixtures:
        for domain, weight in mixture.weights.items():
            if weight > 0 and trainable[domain] < 1:
                raise ProxyError(
                    f"mixture {mixture.name}: domain {domain!r} has weight and no tokens; give it weight 0"
                )
    _check_domains(settings, trainable)
    found: list[tuple[int, int, ProxyRun]] = []
    for name, size in settings.sizes.items():
        shape = shape_of(settings, size, vocab_size)
        step_tokens = settings.batch_sequences * settings.sequence_tokens
        asked = size.tokens or settings.tokens or (settings.tokens_per_parameter or 0) * shape.parameters
        steps = max(1, -(-round(asked) // step_tokens))
        for mixture in mixtures:
            unique = unique_tokens(settings, mixture.weights, trainable, steps * step_tokens)
            _check_parts(name, mixture, unique)
            for seed in settings.seeds:
                told = ProxyRun(
                    name=f"{name}-{mixture.name}-seed{seed}",
                    mixture=mixture.name,
                    size_name=name,
                    seed=seed,
                    size=size,
                    weights=mixture.weights,
                    steps=steps,
                    unique_tokens=unique,
                )
                found.append((shape.parameters * steps, len(found), told))
    return tuple(told for _, _, told in sorted(found, key=lambda one: one[:2]))


def shape_of(settings: Proxies, size: ProxySize, vocab_size: int) -> ModelShape:
    try:
        return ModelShape(
            vocab_size=vocab_size,
            layers=size.layers,
            width=size.width,
            heads=size.heads,
            key_value_heads=size.key_value_heads,
            feed_forward_width=size.feed_forward_width,
            tie_embeddings=settings.tie_embeddings,
        )
    except BudgetError as error:
        raise ProxyError(f"sizes: {str(error).removeprefix('shape.')}") from None


def unique_tokens(
    settings: Proxies, weights: Mapping[str, float], trainable: Mapping[str, int], tokens: int
) -> dict[str, int]:
    """How much of each domain a run of that many tokens may see, so that its epochs are the target's.

    A target of T tokens has epochs w T / U in a domain of U tokens; a proxy of D tokens has the same in a part of
    U D / T tokens, whatever the weights. Epochs given outright, e, ask for a part of w D / e tokens.
    """
    found = {}
    for domain, have in trainable.items():
        wanted: float = have
        if settings.target_tokens is not None:
            target = (settings.target_unique_tokens or {}).get(domain, float(have))
            wanted = target * tokens / settings.target_tokens
        epochs = settings.target_epochs
        asked = epochs.get(domain) if isinstance(epochs, dict) else epochs
        if asked is not None:
            wanted = weights[domain] * tokens / asked
        found[domain] = min(have, max(1, round(wanted)))
    return found


def _check_parts(size: str, mixture: Mixture, unique: Mapping[str, int]) -> None:
    """A part of one token has no target: the proxy is so much shorter than its target that nothing is left of it."""
    for domain, weight in mixture.weights.items():
        if weight > 0 and unique[domain] < 2:
            raise ProxyError(
                f"target_tokens, target_epochs: leave {unique[domain]} token of {domain!r} to size {size} on mixture "
                f"{mixture.name}; take fewer of them, or train proxies on more tokens"
            )


def _check_domains(settings: Proxies, trainable: Mapping[str, int]) -> None:
    for name in ("target_unique_tokens", "target_epochs", "max_epochs"):
        given = getattr(settings, name)
        unknown = sorted(set(given) - set(trainable)) if isinstance(given, dict) else []
        if unknown:
            raise ProxyError(f"{name}: no domain {unknown[0]!r}; the tokens have {', '.join(trainable)}")
