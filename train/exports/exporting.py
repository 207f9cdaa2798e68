"""From a run or its tokens to another program's files: opens what is read, checks what is asked, keeps the account."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from shards.store import filesystem, join
from train.exports.account import NO_TOKENS, Account
from train.exports.folder import Exported, ExportError, Folder
from train.exports.rows import Rows, check_domains
from train.exports.streams import Source
from train.feed.token_shards import TokenShards
from train.tokenise.tokenizer import Tokenizer
from train.tokenise.tokens import TOKENIZER

ACCOUNT_FORMAT = "gristmill-export-1"
FORMATS: dict[str, str] = {
    "megatron": "Megatron-LM indexed dataset: DOMAIN.bin and DOMAIN.idx, a document a sequence",
    "datatrove": "datatrove and nanotron: .ds, .ds.index and .ds.metadata",
    "mds": "MosaicML streaming: index.json and shards of documents, or of fixed sequences (sequence_tokens)",
    "litdata": "litdata with TokensLoader: index.json and chunks of whole blocks (block_tokens)",
    "olmo": "OLMo-core and dolma: raw .npy and .csv.gz of where documents lie; needs an EOS behind each document",
    "llmc": "llm.c and modded-nanogpt: .bin with a header, an end-of-text before each document",
    "huggingface": "Hugging Face datasets: Parquet of documents, or of input_ids (content: tokens)",
    "trl": "TRL: JSON lines of messages, prompt and completion, or text, or of input_ids (content: tokens)",
}
_SETTINGS = {
    "megatron": ("megatron", "Megatron"),
    "datatrove": ("datatrove", "Datatrove"),
    "mds": ("mds", "Mds"),
    "litdata": ("litdata", "Litdata"),
    "olmo": ("olmo", "Olmo"),
    "llmc": ("llmc", "LlmC"),
    "huggingface": ("huggingface", "HuggingFace"),
    "trl": ("trl", "Trl"),
}


def export(
    out: str | Sequence[str],
    to: str,
    destination: str,
    *,
    domains: Sequence[str] | None = None,
    by_domain: bool = True,
    cache: str | None = None,
    **options: Any,
) -> Exported:
    """Write token shards, or the documents of a run, as another program's files.

    out: a run's folder, or the folder of its tokens step (or of the step whose documents are wanted); of tokens several
        that were tokenised alike, too. Any fsspec URL. to: one of FORMATS. destination: a folder that is new or empty;
        a local one appears whole or not at all, in a remote one export.json comes last.
    domains: only these. by_domain: files for each domain; False writes all domains one after another as one, which no
        reader should train on unshuffled. cache: local folder for copies of remote shards.
    options: the format's own settings, see its class.
    Beside the files stands export.json: what went in and came out, what was left out and why, bytes and digest of each
    file; tokens come with their tokenizer.json. The same tokens and options give the same bytes.
    Raises ExportError or TokenShardsError, in one line, for what is missing, damaged, or does not fit the format.
    """
    settings = _settings(to, options)
    with Folder(destination) as folder:
        if getattr(settings, "reads", "tokens") == "tokens":
            source = Source.open(out, domains=domains, by_domain=by_domain, cache=cache)
            account, told = _export_tokens(settings, source, folder)
        elif isinstance(out, str):
            account, told = _export_rows(settings, Rows.open(out, domains=domains), folder)
        else:
            raise ExportError(f"{to}: the documents of one run at a time; name one folder")
        account.check()
        asked = {"format": ACCOUNT_FORMAT, "to": to, "settings": asdict(settings), "by_domain": by_domain}
        whole = {**asked, **told, **account.to_json()}
        return folder.finish(whole, documents=account.documents, tokens=account.tokens)


def settings_of(to: str) -> tuple[str, ...]:
    """The names of a format's own settings. Raises ExportError where there is no such format."""
    return tuple(_class(to).__dataclass_fields__)


def _class(to: str) -> Any:
    if to not in _SETTINGS:
        raise ExportError(f"{to}: not a format; there are {', '.join(FORMATS)}")
    module, name = _SETTINGS[to]
    return getattr(importlib.import_module(f"train.exports.{module}"), name)


def _settings(to: str, options: dict[str, Any]) -> Any:
    settings, known = _class(to), ", ".join(settings_of(to)) or "none"
    try:
        return settings(**options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ExportError(f"{to}: {where}: {first['msg']}; its settings are: {known}") from error


def _export_tokens(settings: Any, source: Source, folder: Folder) -> tuple[Account, dict[str, Any]]:
    """Write tokens and their tokenizer; the account, and what was read."""
    account = Account(documents_in=source.documents_in, tokens_in=source.tokens_in)
    settings.write(source, folder, account)
    account.leave_out(NO_TOKENS, documents=source.documents_in - sum(s.documents() for s in source.streams))
    shards = source.shards
    folder.write(TOKENIZER, _tokenizer(shards))
    return account, {
        "read": "tokens",
        "read_digest": shards.digest,
        "tokenizer": {"digest": shards.tokenizer_digest, "vocab_size": shards.vocab_size},
        "policy": shards.policy,
        "dtype": shards.dtype.name,
        "domains": source.domains,
    }


def _tokenizer(shards: TokenShards) -> bytes:
    """The tokenizer.json beside the shards. Raises ExportError where it is missing, or is not what made them."""
    url = join(shards.folders[0], TOKENIZER)
    files, path = filesystem(url)
    try:
        with files.open(path, "rb") as stored:
            data: bytes = stored.read()
        found = Tokenizer(json=data.decode()).digest
    except FileNotFoundError:
        raise ExportError(f"{url}: no such file; copy the tokens again, or write them again") from None
    except ValueError:
        raise ExportError(f"{url}: no JSON; copy the tokens again, or write them again") from None
    if found != shards.tokenizer_digest:
        raise ExportError(f"{url}: not the tokenizer that made these tokens; copy them again, or write them again")
    return data


def _export_rows(settings: Any, rows: Rows, folder: Folder) -> tuple[Account, dict[str, Any]]:
    """Write the rows of a step; the account, and what was read."""
    account = Account(documents_in=rows.rows, tokens_in=0)
    settings.write_rows(rows, folder, account)
    check_domains(rows)
    return account, {
        "read": "rows",
        "read_digest": rows.digest,
        "domains": None if rows.domains is None else list(rows.domains),
    }
