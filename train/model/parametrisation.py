"""muP: learning rates found on a narrow model hold on a wide one; and the groups of parameters an optimiser takes.

With m = width / base width (Yang et al. 2022, arXiv:2203.03466, table 8, in the form with an output multiplier):

    hidden matrices      variance 1/fan in at the start     Adam's rate / m      decay x m (rate x decay constant)
    embedding            constant deviation                 rate                 none
    norms, biases        constant                           rate                 none
    readout              constant deviation                 rate                 as given; its input x 1/m
    attention scores     1/sqrt(d) with heads of one width, more of them; sqrt(base d)/d where heads grow wider

At the base width this is the standard parametrisation exactly. The standard one (mup_base_width None) keeps m = 1 at
every width. A tied readout follows the embedding, its input still multiplied by 1/m.
"""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from train.model.settings import ModelSettings

Role = Literal["hidden_matrix", "embedding", "vector", "readout"]
ROLES: tuple[Role, ...] = ("hidden_matrix", "embedding", "vector", "readout")


def role_of(name: str, weight: Tensor) -> Role:
    """What a parameter does in the model, by its name (wrappers may have prefixed it) and its dimensions."""
    if weight.ndim < 2:
        return "vector"
    if "embed_tokens" in name:
        return "embedding"
    return "readout" if "lm_head" in name else "hidden_matrix"


def parameter_groups(
    model: nn.Module,
    learning_rate: float,
    weight_decay: float,
    *,
    matrix_update: Literal["adam", "orthogonal"] = "adam",
    settings: ModelSettings | None = None,
) -> list[dict[str, Any]]:
    """torch parameter groups, one a role that has parameters that are trained, in the order of ROLES.

    Each has params, names, role, lr, weight_decay and rate_multiplier: a schedule sets
    lr = rate * group["rate_multiplier"] at every step. weight_decay is for optimisers that shrink by lr * weight_decay
    (torch's AdamW): for hidden matrices it is m times the given one, so that the product is that of the base width.
    Embeddings, norms and biases are not decayed (as OLMo does not).
    matrix_update: "adam": rate / m. "orthogonal": for Muon with updates of spectral norm sqrt(fan out / fan in), whose
        rate already transfers over widths (Bernstein and Newhouse 2024, arXiv:2409.20325): m counts as 1. Muon scaled
        to Adam's root mean square needs "adam".
    settings: of the model; None takes model.settings.
    """
    described = settings if settings is not None else getattr(model, "settings", None)
    if not isinstance(described, ModelSettings):
        raise ValueError("parameter_groups: the model has no settings; pass settings=")
    ratio = described.width_ratio if matrix_update == "adam" else 1.0
    multipliers = {"hidden_matrix": 1 / ratio, "embedding": 1.0, "vector": 1.0, "readout": 1.0}
    decays = {"hidden_matrix": weight_decay * ratio, "embedding": 0.0, "vector": 0.0, "readout": weight_decay}
    found: dict[Role, dict[str, Tensor]] = {role: {} for role in ROLES}
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            found[role_of(name, weight)][name] = weight
    return [
        {
            "params": list(weights.values()),
            "names": tuple(weights),
            "role": role,
            "lr": learning_rate * multipliers[role],
            "weight_decay": decays[role],
            "rate_multiplier": multipliers[role],
        }
        for role, weights in found.items()
        if weights
    ]
