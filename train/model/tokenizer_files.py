"""The tokenizer's files beside a model, so that transformers.AutoTokenizer loads the folder."""

from __future__ import annotations

import json
from typing import Any

from shards.store import exists, filesystem, join, read_json, write_bytes, write_json
from train.model.hugging_face import CheckpointError, SpecialIds

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
SPECIAL = "special_tokens_map.json"
TEMPLATE = "chat_template.jinja"


def write_tokenizer(
    source: str, folder: str, max_tokens: int, specials: SpecialIds, chat_template: str | None = None
) -> None:
    """Write tokenizer.json, tokenizer_config.json and special_tokens_map.json (and chat_template.jinja) to a folder.

    source: a tokenizer.json, or a folder with one, whose settings and template are kept. Special ids are told by
    name; of several ends of text, the first. Raises CheckpointError for an id that the tokenizer does not have.
    """
    single = source.endswith(".json")
    file = source if single else join(source, TOKENIZER)
    if not exists(file):
        raise CheckpointError(f"{file}: not there; give a tokenizer.json or a folder that holds one")
    data = _read(file)
    config: dict[str, Any] = {"clean_up_tokenization_spaces": False, "model_max_length": max_tokens}
    template = chat_template
    if not single:
        config |= read_json(join(source, CONFIG)) or {}
        if template is None and exists(join(source, TEMPLATE)):
            template = _read(join(source, TEMPLATE)).decode()
    # The generic class: a file of its own kind (LlamaTokenizer, say) would rebuild parts of tokenizer.json.
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    if chat_template is not None:
        config.pop("chat_template", None)
    eos = specials.eos[0] if isinstance(specials.eos, tuple) else specials.eos
    given = {"bos_token": specials.bos, "eos_token": eos, "pad_token": specials.pad}
    tokens = _tokens(json.loads(data))
    for key, id in given.items():
        if id is not None and id not in tokens:
            raise CheckpointError(f"{file}: has no token {id} for {key}; the tokenizer is another one")
        if id is not None:
            config[key] = tokens[id]
    special = {key: config[key] for key in ("bos_token", "eos_token", "pad_token", "unk_token") if config.get(key)}
    write_bytes(join(folder, TOKENIZER), data)
    write_json(join(folder, SPECIAL), special)
    write_json(join(folder, CONFIG), config)
    if template is not None:
        write_bytes(join(folder, TEMPLATE), template.encode())


def _tokens(tokenizer: dict[str, Any]) -> dict[int, str]:
    """Tokens by id of a tokenizer.json, the added ones over those of the model."""
    vocabulary = tokenizer.get("model", {}).get("vocab", {})
    # Unigram models list [token, score] in the order of ids.
    listed = vocabulary.items() if isinstance(vocabulary, dict) else ((row[0], i) for i, row in enumerate(vocabulary))
    added = {token["id"]: token["content"] for token in tokenizer.get("added_tokens", ())}
    return {id: token for token, id in listed} | added


def _read(url: str) -> bytes:
    files, path = filesystem(url)
    with files.open(path, "rb") as source:
        return bytes(source.read())
