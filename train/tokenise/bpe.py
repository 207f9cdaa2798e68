"""Training a byte-level BPE tokenizer: any text is encodable, and decoding gives it back byte by byte."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from train.tokenise.tokenizer import Tokenizer, tokenizers_library

# What may become one token, in the manner of the GPT-4 and Llama 3 patterns: contractions; letters with one leading
# character; at most three digits; symbols with a leading space; line ends with the blanks before them; blanks.
# Marks (\p{M}) count as letters, or words of Indic scripts fall apart. Every repetition is bounded, so that matching
# and merging stay linear on any run, and a long text can be cut (train.tokenise.pieces, Tokenizer.encode_strings).
PATTERN = (
    r"'(?i:s|t|re|ve|m|ll|d)"
    r"|[^\r\n\p{L}\p{M}\p{N}]?[\p{L}\p{M}]{1,64}"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{M}\p{N}]{1,64}[\r\n]{0,8}"
    r"|\s{0,64}[\r\n]{1,8}"
    r"|\s{1,64}(?!\S)"
    r"|\s{1,64}"
)
BYTES = 256
MIN_FREQUENCY = 2  # a pair seen once is not worth an entry


def train_tokenizer(
    batches: Iterable[list[str]], *, vocab_size: int, special_tokens: tuple[str, ...] = ()
) -> Tokenizer:
    """Train on batches of texts; memory follows the distinct words, not the text.

    The answer depends on how often words occur, not on the order in which they come. Special tokens get the first ids,
    then the 256 bytes, then the merges; a small text gives fewer than vocab_size entries.
    """
    library = tokenizers_library()
    made = library.Tokenizer(library.models.BPE())
    made.pre_tokenizer = pre_tokenizer()
    made.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=list(special_tokens),
        initial_alphabet=sorted(library.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(iter(batches), trainer)
    return Tokenizer(made.to_str(pretty=True), special_tokens)


def pre_tokenizer() -> Any:
    """The pattern, then bytes as printable characters."""
    before = tokenizers_library().pre_tokenizers
    return before.Sequence([split(), before.ByteLevel(add_prefix_space=False, use_regex=False)])


@lru_cache(maxsize=1)
def split() -> Any:
    """The pattern alone."""
    library = tokenizers_library()
    return library.pre_tokenizers.Split(library.Regex(PATTERN), behavior="isolated")
