"""Examples to ids and masks: a text is encoded once, with offsets, and characters are mapped to tokens.

The tokenizer never adds a token by itself, so a template that writes BOS gives one BOS. The mask marks positions, not
ids: a pad token that equals EOS masks no EOS. Where a content spells a control token, the stretch around it (between
two control tokens of the template) is encoded as ordinary text.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from shards.store import exists, join, read_json
from train.sft.refusals import Refused, SftError
from train.sft.settings import Chat
from train.sft.templates import ChatTemplate, template_source
from train.sft.turns import Example
from train.tokenise.tokenizer import read_bytes, tokenizers_library

CONFIG = "tokenizer_config.json"
Ids = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """ids uint32[n]; trained bool[n]: whether predicting this token has a loss (never the first)."""

    ids: Ids
    trained: Mask


@dataclass(frozen=True, kw_only=True)
class ChatTokenizer:
    """The tokenizer of a model folder: json is its tokenizer.json, names its bos_token, eos_token and so on."""

    json: str
    names: dict[str, str]

    @cached_property
    def digest(self) -> str:
        return xxhash.xxh3_128_hexdigest(json.dumps([json.loads(self.json), self.names], sort_keys=True).encode())

    @cached_property
    def library(self) -> Any:
        """The tokenizers.Tokenizer that knows control tokens, and does not add, cut, pad, drop, or trim offsets."""
        told = json.loads(self.json)
        told["post_processor"] = told["truncation"] = told["padding"] = None
        if told["model"].get("dropout"):
            told["model"]["dropout"] = None
        return tokenizers_library().Tokenizer.from_str(json.dumps(told))

    @cached_property
    def ordinary(self) -> Any:
        """The same, which reads the names of special tokens as text."""
        opened = tokenizers_library().Tokenizer.from_str(self.library.to_str())
        opened.encode_special_tokens = True
        return opened

    @cached_property
    def added(self) -> dict[int, Any]:
        return dict(self.library.get_added_tokens_decoder())

    @property
    def controls(self) -> tuple[str, ...]:
        """Names of the special tokens, and of those that tokenizer_config.json names."""
        special = [token.content for token in self.added.values() if token.special]
        return tuple(dict.fromkeys([*special, *(name for name in self.names.values() if self.id_of(name) is not None)]))

    def id_of(self, name: str | None) -> int | None:
        found = None if name is None else self.library.token_to_id(name)
        return None if found is None else int(found)

    def name_of(self, number: int) -> str:
        return str(self.library.id_to_token(number))

    def named(self, kind: str) -> int:
        """The id of bos_token or eos_token. Raises SftError where the tokenizer has none."""
        found = self.id_of(self.names.get(kind))
        if found is None:
            raise SftError(f"tokenizer: names no {kind} of its vocabulary; set {kind} in tokenizer_config.json")
        return found

    def template(self, chat: Chat, model_folder: str) -> ChatTemplate:
        """The template that the settings name, with this tokenizer's tokens for it to read and to guard."""
        source = template_source(chat.template, model_folder)
        first = ChatTemplate(source=source, clock=chat.template_date)
        structural = tuple(
            token.content
            for token in self.added.values()
            if not token.special and token.content.strip() and token.content in first.literals
        )
        variables: dict[str, Any] = {**self.names, **chat.template_arguments}
        return ChatTemplate(
            source=source,
            variables=variables,
            controls=self.controls,
            structural=tuple(name for name in structural if name not in self.controls),
            clock=chat.template_date,
        )

    def encode(self, examples: Sequence[Example], chat: Chat) -> list[Encoded | Refused]:
        """Ids and mask of each example, or why it has none."""
        texts = [_defused(example) for example in examples]
        found = self.library.encode_batch(texts, add_special_tokens=False)
        return [self._one(example, own, chat) for example, own in zip(examples, found, strict=True)]

    def _one(self, example: Example, encoding: Any, chat: Chat) -> Encoded | Refused:
        try:
            ids = np.array(encoding.ids, np.uint32)
            offsets = np.array(encoding.offsets, np.int64).reshape(-1, 2)
            if example.literal:
                ids, offsets = self._literal(example, ids, offsets)
            offsets = self._names_only(example.text, ids, offsets)
            trained = np.zeros(len(ids), np.bool_)
            for start, stop in example.spans:
                trained |= self._span(example.text, ids, offsets, start, stop)
            return self._ends(ids, trained, example, chat)
        except Refused as refused:
            return refused

    def _ends(self, ids: Ids, trained: Mask, example: Example, chat: Chat) -> Encoded:
        """BOS and EOS by policy, and what must hold of every example."""
        if chat.bos == "prepend":
            ids = np.concatenate([np.array([self.named("bos_token")], np.uint32), ids])
            trained = np.concatenate([[False], trained])
        if example.append_eos:
            ids = np.append(ids, np.uint32(self.named("eos_token")))
            trained = np.append(trained, True)
        bos = self.id_of(self.names.get("bos_token"))
        if len(ids) > 1 and ids[0] == bos and ids[1] == bos:
            raise Refused("double_bos")
        trained[:1] = False  # nothing predicts it
        if not trained.any():
            raise Refused("nothing_to_train")
        return Encoded(ids=ids, trained=trained)

    def _span(self, text: str, ids: Ids, offsets: Offsets, start: int, stop: int) -> Mask:
        """The tokens of text[start:stop]; refused where one reaches across an edge or they decode to something else."""
        first, last = offsets[:, 0], offsets[:, 1]
        for edge in (start, stop):
            if ((first < edge) & (edge < last)).any():
                raise Refused(
                    "boundary_token", f"a token reaches across the {'start' if edge == start else 'end'} of an answer"
                )
        inside = (first >= start) & (last <= stop) & (last > first)
        places = np.flatnonzero(inside)
        if len(places):
            at = int(places[0])
            if not self._decodes(ids[max(at - 1, 0) : at], ids[at : int(places[-1]) + 1], text[start:stop]):
                raise Refused("not_decoded")
        return np.asarray(inside, np.bool_)

    def _decodes(self, before: Ids, ids: Ids, wanted: str) -> bool:
        """Whether ids are those of a text, alone or behind others: a decoder may drop a space at the very start."""
        told = self._decode(ids)
        if told == wanted:
            return True
        behind = self._decode(np.concatenate([before, ids])).removeprefix(self._decode(before))
        if behind == wanted or self.library.normalizer is None:
            return behind == wanted
        return unicodedata.normalize("NFC", behind) == unicodedata.normalize("NFC", wanted)

    def _decode(self, ids: Ids) -> str:
        return str(self.library.decode(ids.tolist(), skip_special_tokens=False))

    def _names_only(self, text: str, ids: Ids, offsets: Offsets) -> Offsets:
        """Offsets of added tokens without the white space that some swallow around their name."""
        if not any(token.lstrip or token.rstrip for token in self.added.values()):
            return offsets
        for place in np.flatnonzero(np.isin(ids, list(self.added))):
            start, stop = offsets[place]
            own = text[start:stop]
            offsets[place] = start + len(own) - len(own.lstrip()), stop - len(own) + len(own.rstrip())
        return offsets

    def _literal(self, example: Example, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Encode again, as ordinary text, each stretch between added tokens in which a content spells one."""
        is_added = np.isin(ids, list(self.added))
        edges = [0, *offsets[is_added].ravel().tolist(), len(example.text)]
        kept_ids, kept_offsets = [], []
        for number in range(0, len(edges), 2):
            start, stop = edges[number], edges[number + 1]
            own = [(a, b) for a, b in example.literal if a < stop and b > start]
            if own:
                stretch_ids, stretch_offsets = self._ordinary(example.text, start, stop, own)
            else:
                within = (offsets[:, 0] >= start) & (offsets[:, 1] <= stop) & ~is_added
                stretch_ids, stretch_offsets = ids[within], offsets[within]
            kept_ids.append(stretch_ids)
            kept_offsets.append(stretch_offsets)
            if number + 2 < len(edges):
                at = np.flatnonzero(is_added)[number // 2]
                kept_ids.append(ids[at : at + 1])
                kept_offsets.append(offsets[at : at + 1])
        return np.concatenate(kept_ids), np.concatenate(kept_offsets)

    def _ordinary(self, text: str, start: int, stop: int, literal: Sequence[tuple[int, int]]) -> tuple[Ids, Offsets]:
        if start and not self._same_behind_controls:
            raise Refused("control_text", "this tokenizer encodes text behind a control token in a way of its own")
        found = self._encode_cut(text, start, stop, [])
        if np.isin(found[0], list(self.added)).any():
            if not self._same_when_cut:
                raise Refused("control_text", "this tokenizer cannot encode the name of that token as text")
            found = self._encode_cut(text, start, stop, [a + 1 for a, _ in literal if start <= a < stop])
        controls = found[1][np.isin(found[0], list(self.added))]
        begins, ends = (np.array(edge, np.int64) for edge in zip(*literal, strict=True))  # rising, none within another
        inside = np.searchsorted(ends, controls[:, 0], "right") < np.searchsorted(begins, controls[:, 1], "left")
        before = np.array([self.id_of(self.controls[0])] if start else [], np.uint32)
        if np.any(inside) or not self._decodes(before, found[0], text[start:stop]):
            raise Refused("control_text", "this tokenizer cannot encode the name of that token as text")
        return found

    def _encode_cut(self, text: str, start: int, stop: int, cuts: Sequence[int]) -> tuple[Ids, Offsets]:
        ids, offsets = [np.zeros(0, np.uint32)], [np.zeros((0, 2), np.int64)]
        for a, b in zip([start, *cuts], [*cuts, stop], strict=True):
            found = self.ordinary.encode(text[a:b], add_special_tokens=False)
            ids.append(np.array(found.ids, np.uint32))
            offsets.append(np.array(found.offsets, np.int64).reshape(-1, 2) + a)
        return np.concatenate(ids), np.concatenate(offsets)

    @cached_property
    def _same_behind_controls(self) -> bool:
        """Whether text behind a control token gets the ids it gets alone."""
        behind = self.library.encode(f"{self.controls[0]}a b", add_special_tokens=False).ids
        return bool(behind[1:] == self.library.encode("a b", add_special_tokens=False).ids)

    @cached_property
    def _same_when_cut(self) -> bool:
        """Whether text gets no mark of a word's start when it is encoded alone."""
        return "".join(self.library.encode("ab", add_special_tokens=False).tokens) == "ab"


def _defused(example: Example) -> str:
    """The text with each literal name replaced by as many letters: only the template's control tokens are left."""
    pieces, last = [], 0
    for start, stop in example.literal:
        pieces += [example.text[last:start], "x" * (stop - start)]
        last = stop
    return "".join([*pieces, example.text[last:]])


def load_chat_tokenizer(model_folder: str) -> ChatTokenizer:
    """The tokenizer of a Hugging Face folder. Raises SftError where it holds none that can be read."""
    path = join(model_folder, "tokenizer.json")
    if not exists(path):
        raise SftError(
            f"{model_folder}: no tokenizer.json; save the tokenizer there with transformers' save_pretrained"
        )
    names = {}
    for key, value in sorted(
        {**_object(model_folder, "special_tokens_map.json"), **_object(model_folder, CONFIG)}.items()
    ):
        told = value.get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and isinstance(told, str):
            names[key] = told
    try:
        made = ChatTokenizer(json=read_bytes(path).decode(), names=names)
        _ = made.library
    except Exception as error:  # the library has no error class of its own
        raise SftError(f"{path}: is no tokenizer ({type(error).__name__}); fetch or save the model again") from None
    return made


def _object(folder: str, name: str) -> dict[str, Any]:
    """The object of a JSON file beside the tokenizer, empty where there is none. Raises SftError where it is torn."""
    url = join(folder, name)
    found = read_json(url)
    if found is None and exists(url):
        raise SftError(f"{url}: is no JSON object; fetch or save the model again")
    return found or {}
