"""datatrove's (and nanotron's) tokenised files: X.ds of raw ids, X.ds.index of where documents end, X.ds.metadata.

The index: a u64 a document, its end in tokens of the file, no leading 0. The metadata: a line `tokenizer|bytes a
token`, a line of tokens, a line of tokens for people.
SOURCE: datatrove, pipeline/tokens/tokenizer.py and utils/dataset.py.
"""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from train.exports.account import Account
from train.exports.folder import Folder, safe_name
from train.exports.streams import Source


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Datatrove:
    """A folder a domain, of files that hold whole documents.

    file_tokens: tokens a file, about; a longer document has a file to itself.
    """

    file_tokens: int = Field(default=1_000_000_000, ge=1)

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        width = source.shards.dtype.itemsize
        account.note(
            f"token_size is {width}. The reader takes windows of seq_len + 1 tokens and drops what is left of each "
            "file: fewer than seq_len + 1 tokens."
        )
        for stream in source.streams:
            for number, runs in enumerate(stream.files(self.file_tokens)):
                name = f"{safe_name(stream.name)}/{number:05d}_00000_shuffled.ds"
                with folder.file(name) as out:
                    for run in runs:
                        out.write_array(run.tokens, source.shards.dtype.name)
                documents, tokens = 0, 0
                with folder.file(f"{name}.index") as out:
                    for run in runs:
                        ends = run.ends
                        out.write_array(tokens + ends, "uint64")
                        documents += len(ends)
                        tokens += run.count
                told = f"{source.shards.tokenizer_digest}|{width}\n{tokens}\n{_told(tokens)}"
                folder.write(f"{name}.metadata", told.encode())
                account.wrote(stream.name, documents=documents, tokens=folder.size_of(name) // width)


def _told(tokens: int) -> str:
    """Three digits and a unit: `1.23 MT`."""
    value, unit = float(tokens), 0
    while value >= 999.5 and unit < 4:
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {['', 'k', 'M', 'G', 'T'][unit]}T"
