"""Hugging Face's config.json to and from ModelSettings; what this model cannot do is refused by name.

Both spellings are read: rope_theta and rope_scaling (transformers 4) and rope_parameters (5). The first is written,
which both majors and vLLM read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from train.model.settings import ModelSettings, RopeScaling

MODEL_TYPES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM"}
LLAMA3_KEYS = {
    "factor": "factor",
    "low_freq_factor": "low_frequency_factor",
    "high_freq_factor": "high_frequency_factor",
    "original_max_position_embeddings": "original_max_positions",
}
DEFAULT_ROPE_THETA = 10_000.0  # transformers' LlamaConfig, where a file says nothing
DEFAULT_NORM_EPSILON = 1e-6  # the same


class CheckpointError(ValueError):
    """A checkpoint that cannot be read or written as asked: one line that says which file, what, and what to do."""


@dataclass(frozen=True)
class SpecialIds:
    """Tokens that generation knows by id: the start of text, its end (several may end a turn), padding."""

    bos: int | None = None
    eos: int | tuple[int, ...] | None = None
    pad: int | None = None


def config_of(settings: ModelSettings, specials: SpecialIds, dtype: str) -> dict[str, Any]:
    """The config.json of a saved model; muP's multipliers are expected to lie in the weights already."""
    shape = settings.shape
    model_type = "qwen2" if settings.query_key_value_bias else "llama"
    scaling = settings.rope_scaling
    rope = None if scaling is None else {key: getattr(scaling, name) for key, name in LLAMA3_KEYS.items()}
    config = {
        "architectures": [MODEL_TYPES[model_type]],
        "model_type": model_type,
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward_width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_value_heads,
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": settings.max_positions,
        "initializer_range": settings.initial_deviation,
        "rms_norm_eps": settings.norm_epsilon,
        "rope_theta": settings.rope_theta,
        "rope_scaling": None if rope is None else {"rope_type": "llama3", **rope},
        "tie_word_embeddings": settings.tie_embeddings,
        "attention_dropout": 0.0,
        "use_cache": True,
        "torch_dtype": dtype,
        "bos_token_id": specials.bos,
        "eos_token_id": list(specials.eos) if isinstance(specials.eos, tuple) else specials.eos,
        "pad_token_id": specials.pad,
    }
    extra = {"use_sliding_window": False} if model_type == "qwen2" else {"attention_bias": False, "mlp_bias": False}
    return config | extra


def settings_of(config: Mapping[str, Any], where: str) -> ModelSettings:
    """The settings of a checkpoint from its config.json. Raises CheckpointError for what this model cannot do."""
    _refuse(config, where)
    model_type = config["model_type"]
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = rope.get("rope_theta") or config.get("rope_theta") or DEFAULT_ROPE_THETA
    missing = [
        key
        for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        if config.get(key) is None
    ]
    if missing:
        raise CheckpointError(f"{where}: no {', '.join(missing)}; a config.json of transformers has them")
    try:
        return ModelSettings(
            vocab_size=config["vocab_size"],
            layers=config["num_hidden_layers"],
            width=config["hidden_size"],
            heads=config["num_attention_heads"],
            key_value_heads=config.get("num_key_value_heads"),
            head_width=config.get("head_dim"),
            feed_forward_width=config["intermediate_size"],
            tie_embeddings=bool(config.get("tie_word_embeddings", False)),
            query_key_value_bias=model_type == "qwen2",
            rope_theta=theta,
            rope_scaling=_scaling(rope, config, where),
            norm_epsilon=config.get("rms_norm_eps", DEFAULT_NORM_EPSILON),
            max_positions=config.get("max_position_embeddings", 2048),
            initial_deviation=config.get("initializer_range", 0.02),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        told = ".".join(str(part) for part in first["loc"])
        raise CheckpointError(
            f"{where}: {told + ': ' if told else ''}{first['msg'].removeprefix('Value error, ')}"
        ) from None


def _refuse(config: Mapping[str, Any], where: str) -> None:
    """Raise for everything that would give other logits than the model that was trained."""
    kind = config.get("model_type")
    known = ", ".join(MODEL_TYPES)
    positions = config.get("max_position_embeddings") or math.inf
    sliding = config.get("sliding_window") if kind == "mistral" or config.get("use_sliding_window") else None
    layers = set(config.get("layer_types") or ()) - {"full_attention"}
    if sliding is not None and sliding >= positions:
        sliding, layers = None, layers - {"sliding_attention"}
    faults = (
        (kind not in MODEL_TYPES, f"model_type {kind!r} is none of the Llama layout ({known})"),
        (config.get("hidden_act", "silu") != "silu", f"hidden_act {config.get('hidden_act')!r}; only silu is built"),
        (kind != "qwen2" and config.get("attention_bias"), "attention_bias: biases only as Qwen 2 has them"),
        (config.get("mlp_bias"), "mlp_bias: feed-forward layers have no biases here"),
        (sliding is not None, f"sliding_window {sliding}: attention is over the whole document here"),
        (layers, f"layer_types {', '.join(sorted(map(str, layers)))}: attention is over the whole document here"),
        (config.get("quantization_config"), "quantization_config: save the model dequantised first"),
    )
    for wrong, told in faults:
        if wrong:
            raise CheckpointError(f"{where}: {told}")


def _scaling(rope: Mapping[str, Any], config: Mapping[str, Any], where: str) -> RopeScaling | None:
    kind = rope.get("rope_type", rope.get("type", "default"))
    if rope.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0)) not in (None, 1.0):
        raise CheckpointError(f"{where}: partial_rotary_factor; every dimension of a head is turned here")
    if kind in ("default", None):
        return None
    if kind != "llama3":
        raise CheckpointError(f"{where}: rope type {kind!r}; default and llama3 are built")
    absent = [key for key in LLAMA3_KEYS if rope.get(key) is None]
    if absent:
        raise CheckpointError(f"{where}: rope type llama3 without {', '.join(absent)}")
    return RopeScaling(**{name: rope[key] for key, name in LLAMA3_KEYS.items()})
