"""llm.c's (and modded-nanogpt's) token files: a header of 256 int32, then raw ids, an end-of-text before each document.

The header (little-endian) begins with a magic number, a version and the number of tokens: 20240520 and 1 for uint16,
20240801 and 7 for uint32. SOURCE: llm.c, dev/data/data_common.py and llmc/dataloader.h.
"""

from __future__ import annotations

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from train.exports.account import Account
from train.exports.folder import ExportError, Folder, safe_name
from train.exports.streams import Run, Source, lengths

HEADERS = {"uint16": (20240520, 1), "uint32": (20240801, 7)}
HEADER_ENTRIES = 256
MAX_FILE_TOKENS = (1 << 31) - 1  # the header has 31 bits for them


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class LlmC:
    """Files DOMAIN_SPLIT_NNNNNN.bin that hold whole documents.

    What stands before each document is its BOS where the tokens have one, else the EOS behind it moves before it.
    file_tokens: tokens a file, about; a longer document has a file to itself. split: a word in the files' names.
    """

    file_tokens: int = Field(default=100_000_000, ge=1, le=MAX_FILE_TOKENS)
    split: str = Field(default="train", pattern=r"^[A-Za-z0-9-]+$")

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        """Raises ExportError for documents with neither BOS nor EOS, and for one of 2^31 tokens or more."""
        policy, dtype = source.shards.policy, source.shards.dtype.name
        moves = not policy.get("prepend_bos")
        if moves and not policy.get("append_eos"):
            raise ExportError(
                "llm.c: it wants an end-of-text before each document, and these have neither BOS nor EOS; "
                "set tokens.append_eos: true"
            )
        mark = int(policy["eos_id"] if moves else policy["bos_id"])
        told = "EOS, moved from its end to its start" if moves else "BOS"
        account.note(f"Each document begins with id {mark}: its {told}.")
        for stream in source.streams:
            for number, runs in enumerate(stream.files(self.file_tokens)):
                tokens = sum(run.count for run in runs)
                if tokens > MAX_FILE_TOKENS:
                    raise ExportError(f"{stream.name}: a document of {tokens} tokens; llm.c holds fewer than 2^31")
                header = np.zeros(HEADER_ENTRIES, np.int32)
                header[:3] = (*HEADERS[dtype], tokens)
                with folder.file(f"{safe_name(stream.name)}_{self.split}_{number:06d}.bin") as out:
                    out.write_array(header, "int32")
                    if moves:
                        out.write_array(np.array([mark]), dtype)
                    for place, run in enumerate(runs):
                        _check_marks(run, mark, at_end=moves)
                        ids = run.tokens
                        last = moves and place == len(runs) - 1
                        out.write_array(ids[:-1] if last else ids, dtype)
                account.wrote(stream.name, documents=len(lengths(runs)), tokens=tokens)


def _check_marks(run: Run, mark: int, *, at_end: bool) -> None:
    """Moving the marks by one place is right only where each document has its own."""
    ends = run.ends
    places = ends - 1 if at_end else ends - run.lengths
    wrong = np.flatnonzero(run.tokens[places] != mark)
    if len(wrong):
        raise ExportError(
            f"shard {run.shard}, document {run.rows[wrong[0]]}: no id {mark} at its {'end' if at_end else 'start'}, "
            "which the tokens' policy promises; write the tokens again"
        )
