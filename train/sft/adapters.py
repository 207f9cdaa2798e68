"""LoRA by peft on train.model's Transformer: put in, told apart from the base weights, added to them, saved.

An adapter on disk is peft's: adapter_config.json and adapter_model.safetensors under the names of Hugging Face's Llama,
so that peft.PeftModel.from_pretrained loads it on the base model in transformers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from shards.store import atomic, filesystem, join, write_json
from train.model.transformer import Transformer
from train.sft.refusals import SftError
from train.sft.settings import Lora

if TYPE_CHECKING:
    from peft import LoraConfig

ADAPTER = "default"
BASE, DOWN, UP = ".base_layer.weight", f".lora_A.{ADAPTER}.weight", f".lora_B.{ADAPTER}.weight"


def put_in(model: Transformer, lora: Lora, seed: int) -> Transformer:
    """The model with adapters in its linear maps, all else frozen; it computes what it did until they are trained."""
    try:
        from peft import inject_adapter_in_model
    except ModuleNotFoundError as error:
        raise SftError("lora: needs the library peft: pip install 'gristmill[train]'") from error
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # peft draws the factors from the global generator
        inject_adapter_in_model(_config(lora, None), model, ADAPTER)
    return model


def _config(lora: Lora, base: str | None) -> LoraConfig:
    from peft import LoraConfig

    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets),
        bias="none",
        task_type="CAUSAL_LM",
        base_model_name_or_path=base,
        inference_mode=base is not None,
    )


def merged(state: Mapping[str, Tensor], lora: Lora) -> dict[str, Tensor]:
    """The state of the model without adapters that computes the same: W + alpha / rank * B A."""
    found = {}
    for name, weight in state.items():
        if name.endswith(BASE):
            own = name.removesuffix(BASE)
            update = state[own + UP].float() @ state[own + DOWN].float()
            found[f"{own}.weight"] = (weight.float() + lora.alpha / lora.rank * update).to(weight.dtype)
        elif ".base_layer." in name:  # a bias
            found[name.replace(".base_layer.", ".")] = weight
        elif ".lora_" not in name:
            found[name] = weight
    return found


def save_adapter(state: Mapping[str, Tensor], lora: Lora, folder: str, base: str) -> None:
    """Write the adapters of a state to a local folder; the configuration, without which peft loads none, comes last.

    base: the model folder that they were trained on, as peft is to find it.
    """
    from safetensors.torch import save

    factors = {
        f"base_model.model.model.{name.replace(f'.{ADAPTER}.', '.')}": weight.contiguous()
        for name, weight in state.items()
        if name.endswith((DOWN, UP))
    }
    told: dict[str, Any] = _config(lora, base).to_dict()
    path = join(folder, "adapter_config.json")
    files, name = filesystem(path)
    if files.exists(name):
        files.rm_file(name)
    with atomic(join(folder, "adapter_model.safetensors")) as out:
        out.write(save(factors, metadata={"format": "pt"}))
    write_json(path, {key: sorted(value) if isinstance(value, set) else value for key, value in told.items()})


def base_name(model_folder: str) -> str:
    """How an adapter names its base: an absolute path where that is local."""
    return model_folder if "://" in model_folder else os.path.abspath(model_folder)
