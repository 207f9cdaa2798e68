"""What a token-shards manifest says of its shards, as columns: the only index that a plan needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from shards.store import filesystem, join, read_json

WHOLE = "all"  # the stream's name where a shard holds documents of all domains (`by_domain: false`)
WIDTHS = {"uint16": 2, "uint32": 4}


class TokenShardsError(ValueError):
    """Token shards that are missing, torn, changed, or that do not belong together; the text says which and why."""


@dataclass(frozen=True, kw_only=True)
class TokenManifest:
    """One folder of token shards: k shards as columns of k entries, in the manifest's order.

    folder: the tokens step's own folder. names, ends_names, documents_names: files below it. digests, ends_digests:
    xxh3-128 of those files; documents_digests: xxh3-128 of the lines `id token_count`. Digests and names are bytes of a
    fixed width, so that 100,000 shards take some 20 MB.
    """

    folder: str
    dtype: str
    tokenizer_digest: str
    vocab_size: int
    policy: dict[str, Any]
    ordered_digest: str
    text_bytes: dict[str, int]
    domains: list[str]
    tokens: NDArray[np.int64]
    documents: NDArray[np.int64]
    names: NDArray[np.bytes_]
    ends_names: NDArray[np.bytes_]
    documents_names: NDArray[np.bytes_]
    digests: NDArray[np.bytes_]
    ends_digests: NDArray[np.bytes_]
    documents_digests: NDArray[np.bytes_]

    @classmethod
    def read(cls, folder: str) -> TokenManifest:
        """The manifest of a tokens folder, or of the run that it belongs to (a folder with run.json).

        Raises TokenShardsError where there is none or where it is not whole.
        """
        # As a whole path, since a plan's record of its folders is read from elsewhere, too.
        url, told = _find(folder if "://" in folder else os.path.abspath(folder))
        try:
            return cls._of(url, told)
        except (KeyError, TypeError, OverflowError, AttributeError) as error:
            raise TokenShardsError(
                f"{join(url, 'manifest.json')}: not a manifest of token shards ({type(error).__name__} {error}); "
                "write the tokens again"
            ) from error
        except ValueError as error:
            if isinstance(error, TokenShardsError):
                raise
            raise TokenShardsError(
                f"{join(url, 'manifest.json')}: a value of another kind than a manifest has; write the tokens again"
            ) from error

    @classmethod
    def _of(cls, url: str, told: dict[str, Any]) -> TokenManifest:
        shards = told["shards"]
        dtype = told["dtype"]
        if dtype not in WIDTHS:
            raise TokenShardsError(f"{url}: dtype {dtype!r} is unknown; it would be one of {', '.join(WIDTHS)}")

        def column(key: str) -> NDArray[np.bytes_]:
            return np.array([shard[key].encode() for shard in shards], dtype=np.bytes_)

        found = cls(
            folder=url,
            dtype=dtype,
            tokenizer_digest=told["tokenizer"]["digest"],
            vocab_size=int(told["tokenizer"]["vocab_size"]),
            policy=told["policy"],
            ordered_digest=told["ordered_digest"],
            text_bytes={name: int(counts.get("text_bytes", 0)) for name, counts in told["domains"].items()},
            domains=[WHOLE if shard["domain"] is None else shard["domain"] for shard in shards],
            tokens=np.array([shard["tokens"] for shard in shards], np.int64),
            documents=np.array([shard["documents"] for shard in shards], np.int64),
            names=column("name"),
            ends_names=column("ends_name"),
            documents_names=column("documents_name"),
            digests=column("digest"),
            ends_digests=column("ends_digest"),
            documents_digests=column("documents_digest"),
        )
        found._check(told)
        return found

    def _check(self, told: dict[str, Any]) -> None:
        """Counts that contradict each other mean a manifest that something has changed."""
        sizes = np.array([shard["bytes"] for shard in told["shards"]], np.int64)
        width = WIDTHS[self.dtype]
        wrong = np.flatnonzero((self.tokens < 0) | (self.documents < 0) | (sizes != self.tokens * width))
        if len(wrong):
            name = join(self.folder, self.names[wrong[0]].decode())
            raise TokenShardsError(
                f"{name}: the manifest gives {sizes[wrong[0]]} bytes to {self.tokens[wrong[0]]} tokens of {width} "
                "bytes; write the tokens again"
            )
        for key, counts in (("tokens", self.tokens), ("documents", self.documents)):
            if told[key] != counts.sum():
                raise TokenShardsError(
                    f"{join(self.folder, 'manifest.json')}: {told[key]} {key} in all, but its shards have "
                    f"{counts.sum()}; write the tokens again"
                )


def _find(folder: str) -> tuple[str, dict[str, Any]]:
    """The tokens folder and its manifest, of a tokens folder or a run's."""
    told = _manifest(folder)
    if told is not None and told.get("kind") == "tokens":
        return folder.rstrip("/"), told
    run = read_json(join(folder, "run.json"))
    steps = run.get("steps") if run is not None else None
    for step in steps if isinstance(steps, list) else []:
        if step.get("kind") == "tokens":
            url = join(folder, step["folder"])
            told = _manifest(url)
            if told is None or told.get("kind") != "tokens":
                raise TokenShardsError(f"{url}: no manifest of token shards; the run's tokens are not finished")
            return url, told
    raise TokenShardsError(
        f"{folder}: no token shards; it would be a run's folder (with run.json and a tokens step) or the step's own "
        "folder (with manifest.json)"
    )


def _manifest(folder: str) -> dict[str, Any] | None:
    """manifest.json as read by pydantic's parser, at twice the speed of json's: 57 MB for 100,000 shards."""
    files, path = filesystem(join(folder, "manifest.json"))
    try:
        with files.open(path, "rb") as source:
            found = from_json(source.read(), cache_strings="keys")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise TokenShardsError(f"{path}: not JSON ({error}); write the tokens again") from error
    return found if isinstance(found, dict) else None
