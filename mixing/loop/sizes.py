"""The scales that proxies can be made at, where there are several: what a round may choose among by cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mixing.loop.settings import TOKENS_PER_PARAMETER, Mix


def scales_of(settings: Mix, tokens: Sequence[str]) -> dict[str, Any]:
    """`sizes` and `target` as mixing.design.propose takes them; nothing where there is one size, or no token shards.

    A size is (parameters, tokens) of its runs, all parameters counted, as the table of observations has them.
    """
    swarm = settings.swarm
    if len(swarm.sizes) < 2 or not tokens:
        return {}
    from train import TokenShards
    from train.proxies.planning import shape_of

    vocab_size = TokenShards.open(list(tokens)).vocab_size
    sizes = {}
    for name, size in swarm.sizes.items():
        parameters = shape_of(swarm, size, vocab_size).parameters
        a_parameter = swarm.tokens_per_parameter or TOKENS_PER_PARAMETER
        sizes[name] = float(parameters), float(size.tokens or swarm.tokens or a_parameter * parameters)
    known = settings.parameters is not None and settings.tokens is not None
    return {"sizes": sizes, "target": (settings.parameters, settings.tokens) if known else None}


def runs_a_mixture(settings: Mix, tokens: Sequence[str]) -> int:
    """How many proxies a proposed mixture takes: one a seed, and a size where the round does not choose it."""
    swarm = settings.proxies
    return len(swarm.seeds) * (1 if scales_of(settings, tokens) else len(swarm.sizes))
