"""Models in the Hugging Face Llama layout: config.json and safetensors, which transformers and vLLM load as they are.

config.json is written last: a folder without one is not a checkpoint. muP's multipliers are folded into the weights
(the output's into the final norm, attention's into the queries), so that any other library computes the same logits;
a loaded model is therefore of the standard parametrisation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from shards.store import atomic, exists, filesystem, is_local, join, names, read_json, remove, write_json
from train.model.hugging_face import CheckpointError, SpecialIds, config_of, settings_of
from train.model.settings import ModelSettings
from train.model.tokenizer_files import write_tokenizer
from train.model.transformer import Transformer

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD_BYTES = 2 << 30
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}
Dtype = Literal["float32", "bfloat16", "float16", "float64"]


def save_hugging_face(
    model: nn.Module,
    folder: str,
    tokenizer: str | None = None,
    *,
    dtype: Dtype = "bfloat16",
    state: Mapping[str, Tensor] | None = None,
    bos_id: int | None = None,
    eos_id: int | tuple[int, ...] | None = None,
    pad_id: int | None = None,
    chat_template: str | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write a model to a folder (any fsspec URL); what was a checkpoint there before is replaced.

    model: a Transformer, compiled or not. state: its whole state_dict, where the model itself holds only a part
    (FSDP). tokenizer: a tokenizer.json, or a folder that holds one and the files beside it. bos_id, eos_id, pad_id:
    for generation, and by name in tokenizer_config.json. chat_template: Jinja, overrides the tokenizer's own.
    shard_bytes: a file of weights is about this long at most; a longer model gets an index.
    """
    settings = model.settings
    assert isinstance(settings, ModelSettings)
    write_checkpoint(
        _named(folded(state if state is not None else model.state_dict(), settings)),
        settings,
        folder,
        tokenizer,
        dtype=dtype,
        specials=SpecialIds(bos=bos_id, eos=eos_id, pad=pad_id),
        chat_template=chat_template,
        shard_bytes=shard_bytes,
    )


def write_checkpoint(
    weights: Sequence[tuple[str, Tensor]],
    settings: ModelSettings,
    folder: str,
    tokenizer: str | None,
    *,
    dtype: Dtype,
    specials: SpecialIds,
    chat_template: str | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Write weights that lie under Hugging Face's keys already, the readout only where it is not tied."""
    remove(join(folder, CONFIG))
    for stale in [name for name in names(folder, ".safetensors") if name.startswith("model")] + [INDEX]:
        remove(join(folder, stale))
    _write_weights(weights, folder, DTYPES[dtype], shard_bytes)
    if tokenizer is not None:
        write_tokenizer(tokenizer, folder, settings.max_positions, specials, chat_template)
    config = config_of(settings, specials, dtype)
    generation = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    write_json(join(folder, "generation_config.json"), {key: id for key, id in generation.items() if id is not None})
    write_json(join(folder, CONFIG), config)


def load_hugging_face(folder: str, *, dtype: Dtype = "float32") -> Transformer:
    """The model of a folder or URL with config.json and safetensors: Llama, Mistral, SmolLM 2, Qwen 2 and their kin.

    Weights are converted to dtype. Raises CheckpointError that names the file and key for what is missing, too many,
    of another shape, or beyond this model (other architectures, rope types, activations, sliding windows, biases).
    """
    config = read_json(join(folder, CONFIG))
    if config is None:
        raise CheckpointError(
            f"{join(folder, CONFIG)}: not there or not JSON; give a folder that save_pretrained wrote"
        )
    settings = settings_of(config, join(folder, CONFIG))
    with torch.device("meta"):
        model = Transformer(settings, seed=None)
    wanted = {key: weight.shape for key, weight in _named(model.state_dict())}
    if settings.tie_embeddings:
        wanted.pop("lm_head.weight", None)
    found: dict[str, Tensor] = {}
    for file, keys in _files(folder, wanted):
        with _opened(file) as weights:
            _check(set(weights.keys()), keys, wanted, file)
            for key in keys:
                weight = weights.get_tensor(key)
                if weight.shape != wanted[key]:
                    told = f"{tuple(weight.shape)}, not {tuple(wanted[key])} as config.json says"
                    raise CheckpointError(f"{file}: {key} is {told}")
                found[key.removeprefix("model.")] = weight.to(DTYPES[dtype], copy=True)
    if settings.tie_embeddings:
        found["lm_head.weight"] = found["embed_tokens.weight"]
    model.load_state_dict(found, assign=True)
    model.tie()
    return model


def folded(state: Mapping[str, Tensor], settings: ModelSettings) -> dict[str, Tensor]:
    """The state of a model of the standard parametrisation that gives the same logits.

    The final norm's gain takes the output multiplier; queries (and their biases) take what attention's scale is more
    than 1/sqrt(head width). Prefixes that torch.compile and wrappers put before names are taken off.
    """
    scale = settings.attention_scale * math.sqrt(settings.shape.head_width)
    factors = {"norm.weight": settings.output_multiplier}
    out = {}
    for name, weight in state.items():
        for wrapper in ("_orig_mod.", "_checkpoint_wrapped_module.", "module."):
            name = name.replace(wrapper, "")
        factor = scale if ".q_proj." in name else factors.get(name, 1.0)
        out[name] = weight.detach() if factor == 1.0 else weight.detach() * factor
    if settings.tie_embeddings:
        out.pop("lm_head.weight", None)
    return out


def _named(state: Mapping[str, Tensor]) -> list[tuple[str, Tensor]]:
    """Weights under Hugging Face's keys: all but the readout lie under `model.`."""
    return [(name if name.startswith("lm_head.") else f"model.{name}", weight) for name, weight in state.items()]


def _write_weights(weights: Sequence[tuple[str, Tensor]], folder: str, dtype: torch.dtype, shard_bytes: int) -> None:
    from safetensors.torch import save

    groups: list[dict[str, Tensor]] = [{}]
    filled = 0
    for key, weight in weights:
        size = weight.numel() * dtype.itemsize
        if groups[-1] and filled + size > shard_bytes:
            groups.append({})
            filled = 0
        groups[-1][key] = weight
        filled += size
    files = [f"model-{i + 1:05d}-of-{len(groups):05d}.safetensors" for i in range(len(groups))]
    files = [WEIGHTS] if len(groups) == 1 else files
    for file, group in zip(files, groups, strict=True):
        ready = {key: weight.to("cpu", dtype).contiguous() for key, weight in group.items()}
        with atomic(join(folder, file)) as out:
            out.write(save(ready, metadata={"format": "pt"}))
    if len(groups) > 1:
        total = sum(weight.numel() * dtype.itemsize for _, weight in weights)
        where = {key: file for file, group in zip(files, groups, strict=True) for key in group}
        write_json(join(folder, INDEX), {"metadata": {"total_size": total}, "weight_map": where})


def _files(folder: str, wanted: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """(file, keys to take from it), from the index where there is one."""
    index = join(folder, INDEX)
    if not exists(index):
        file = join(folder, WEIGHTS)
        if not exists(file):
            raise CheckpointError(f"{file}: not there, nor {INDEX}; only safetensors are read")
        return [(file, list(wanted))]
    places = (read_json(index) or {}).get("weight_map")
    if not isinstance(places, dict):
        raise CheckpointError(f"{index}: holds no weight_map; fetch the checkpoint again")
    absent = [key for key in wanted if key not in places]
    if absent:
        raise CheckpointError(f"{index}: {_some(absent)} not listed, though config.json asks for it")
    keys: dict[str, list[str]] = {name: [] for name in sorted(set(places.values()))}
    for key in wanted:
        keys[places[key]].append(key)
    lost = [name for name in keys if not exists(join(folder, name))]
    if lost:
        raise CheckpointError(f"{join(folder, lost[0])}: not there, though {INDEX} lists it")
    return [(join(folder, name), listed) for name, listed in keys.items()]


def _check(present: set[str], keys: Sequence[str], wanted: Mapping[str, Any], file: str) -> None:
    missing = [key for key in keys if key not in present]
    if missing:
        raise CheckpointError(f"{file}: {_some(missing)} missing, though config.json asks for it")
    # Old exports store the frequencies, and tied ones may store the readout twice: both follow from the rest.
    surplus = sorted(key for key in present - set(wanted) if not key.endswith("rotary_emb.inv_freq"))
    surplus = [key for key in surplus if key != "lm_head.weight"]
    if surplus:
        raise CheckpointError(f"{file}: {_some(surplus)} unexpected: not a plain Llama-layout model")


def _some(keys: Sequence[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{keys[0]} and {len(keys) - 1} more"


@contextmanager
def _opened(file: str) -> Iterator[Any]:
    """A safetensors file to take tensors from, mapped where it is local, fetched where not."""
    import tempfile

    from safetensors import SafetensorError, safe_open

    files, path = filesystem(file)
    with tempfile.TemporaryDirectory(prefix="gristmill-") as scratch:
        if not is_local(file):
            files.get_file(path, join(scratch, WEIGHTS))
            path = join(scratch, WEIGHTS)
        try:
            with safe_open(path, framework="pt") as weights:
                yield weights
        except SafetensorError as error:
            raise CheckpointError(f"{file}: damaged ({error}); fetch the checkpoint again") from None
