"""The mixture beside an export: which files of another program have which share, as that program takes it.

DEST/mixture.json    {format, weights, tokens, epochs ..., "blend": [{domain, weight, path, epochs}], "arguments"}
"""

from __future__ import annotations

from typing import Any, Final

from mixing.loop.mixture_file import MixtureFile
from mixing.observations.points import MixingError
from shards.store import join, read_json, write_json
from train.exports.folder import ACCOUNT, safe_name

MIXTURE: Final = "mixture.json"
FORMATS: Final = {
    "megatron": "--data-path takes weight and prefix in turn; weights are shares of samples of one length: of tokens",
    "mds": "Stream(local=path, proportion=weight): shares of samples, of tokens where all have one length",
    "litdata": "CombinedStreamingDataset(datasets, weights=...): shares of blocks, of tokens",
    "datatrove": "nanotron's dataset_folder and dataset_weights, in this order: shares of samples, of tokens",
    "olmo": "SourceMixtureDatasetConfig: target_ratio is the weight, max_repetition_ratio the epochs",
}
"""Programs that take weights of several sources, and what a weight means there."""


def blend(mixture: MixtureFile, folder: str) -> dict[str, Any]:
    """Write FOLDER/mixture.json into an export of token shards, and return it.

    Each domain of weight above 0 stands with the path of its files (a prefix for megatron, else a folder).
    Raises MixingError where the folder is no export by domain, lacks a domain, or its program takes no weights.
    """
    account = read_json(join(folder, ACCOUNT))
    if account is None:
        raise MixingError(f"{folder}: holds no {ACCOUNT}; export token shards there first")
    to = str(account.get("to"))
    if to not in FORMATS:
        raise MixingError(f"{folder}: {to} takes no weights of sources; export to one of {', '.join(FORMATS)}")
    if not account.get("by_domain"):
        raise MixingError(f"{folder}: all domains are in one stream there; export again with a stream a domain")
    missing = sorted(name for name, weight in mixture.weights.items() if weight > 0 and name not in account["streams"])
    if missing:
        raise MixingError(f"{folder}: has no {missing[0]!r}, which the mixture gives weight; export it, too")
    epochs = mixture.epochs or {}
    sources = [
        {"domain": name, "weight": weight, "path": join(folder, safe_name(name)), "epochs": epochs.get(name)}
        for name, weight in sorted(mixture.weights.items())
        if weight > 0
    ]
    told = {**mixture.to_json(), "blend": sources, "meaning": FORMATS[to]}
    if to == "megatron":
        pairs = [(f"{one['weight']:.8g}", one["path"]) for one in sources]
        told["arguments"] = ["--data-path", *(part for pair in pairs for part in pair)]
    write_json(join(folder, MIXTURE), told)
    return told
