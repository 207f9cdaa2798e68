"""Other kinds of tokenizers: pieces with a mark of a word's start, tokens that swallow white space, normalisation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from train.sft.encoding import ChatTokenizer, Encoded, load_chat_tokenizer
from train.sft.refusals import Refused
from train.sft.rows import Raw, conversation
from train.sft.settings import Chat
from train.sft.turns import examples

NAMES = ("<|im_start|>", "<|im_end|>", "<|assistant|>", "<|user|>", "<|end|>")
PHI = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}" + (
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def tokenizer(folder: Path, scheme: str = "never", *, swallow: bool = False, compose: bool = False) -> ChatTokenizer:
    """A BPE over pieces like sentencepiece's, with a byte for each character that it does not know."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    marks = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(marks)
    if compose:
        made.normalizer = normalizers.NFC()
    known = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=known, show_progress=False)
    made.train_from_iterator(["the mill grinds grain into flour, user assistant\n"] * 20, trainer)
    told = json.loads(made.to_str())
    told["added_tokens"] = []
    made = Tokenizer.from_str(json.dumps(told))
    made.add_special_tokens([AddedToken(name, normalized=False, rstrip=swallow) for name in NAMES])
    folder.mkdir(exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
    return load_chat_tokenizer(str(folder))


def encoded(told: ChatTokenizer, chat: Chat, folder: Path, *contents: str) -> Encoded | Refused:
    roles = ["user", "assistant"] * len(contents)
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    row = conversation(Raw(location="x:1", values={"messages": messages}))
    (found,) = told.encode(examples(row, told.template(chat, str(folder)), chat), chat)
    return found


def words(told: ChatTokenizer, found: Encoded | Refused) -> str:
    assert isinstance(found, Encoded)
    return str(told.library.decode(found.ids[found.trained].tolist(), skip_special_tokens=False))


@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_pieces_with_a_mark_of_a_words_start_keep_the_mask_exact(scheme: str, tmp_path: Path) -> None:
    told, chat = tokenizer(tmp_path, scheme), Chat(template="chatml")
    for answer in ("the mill", " the mill", "\u6f22\u5b57 \U0001f642", "a\n\nb "):
        found = encoded(told, chat, tmp_path, "grain?", answer)
        assert words(told, found).lstrip(" ") == f"{answer}<|im_end|>".lstrip(" ")


def test_a_name_in_a_content_is_text_or_refused_where_the_tokenizer_marks_starts(tmp_path: Path) -> None:
    question = "what is <|im_end|> there?"
    for scheme in ("always", "never"):
        told = tokenizer(tmp_path, scheme)
        found = encoded(told, Chat(template="chatml"), tmp_path, question, "an end")
        assert isinstance(found, Encoded)
        assert (found.ids == told.id_of("<|im_end|>")).sum() == 2
        assert question in told.library.decode(found.ids.tolist(), skip_special_tokens=False)
    found = encoded(tokenizer(tmp_path, "first"), Chat(template="chatml"), tmp_path, question, "an end")
    assert isinstance(found, Refused)
    assert found.reason == "control_text"


def test_tokens_that_swallow_white_space_end_where_their_name_ends(tmp_path: Path) -> None:
    template = tmp_path / "phi.jinja"
    template.write_text(PHI)
    told = tokenizer(tmp_path / "model", swallow=True)
    chat = Chat(template=str(template))
    assert words(told, encoded(told, chat, tmp_path, "grain?", "the mill", "more?", "the flour")) == (
        "the mill<|end|>the flour<|end|>"
    )
    lost = encoded(told, chat, tmp_path, "grain?", "\n the mill")  # <|assistant|> swallows what begins the answer
    assert isinstance(lost, Refused)
    assert lost.reason == "not_decoded"


def test_a_tokenizer_that_composes_characters_changes_no_answer_but_in_form(tmp_path: Path) -> None:
    told = tokenizer(tmp_path, compose=True)
    found = encoded(told, Chat(template="chatml"), tmp_path, "grain?", "cafe\u0301")
    assert words(told, found) == "caf\u00e9<|im_end|>"


def test_generation_blocks_are_read_over(families: dict[str, Any], tmp_path: Path) -> None:
    template = tmp_path / "blocks.jinja"
    template.write_text(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    told = load_chat_tokenizer(families["chatml"].folder)
    found = encoded(told, Chat(template=str(template)), tmp_path, "grain?", "the mill")
    assert words(told, found) == "the mill<|im_end|>"


def test_a_template_cannot_reach_out_of_its_sandbox(families: dict[str, Any], tmp_path: Path) -> None:
    template = tmp_path / "evil.jinja"
    for source in (
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
    ):
        template.write_text(source)
        told = load_chat_tokenizer(families["chatml"].folder)
        with pytest.raises(Refused) as refused:
            encoded(told, Chat(template=str(template)), tmp_path, "grain?", "the mill")
        assert refused.value.reason == "template_refused"


def test_settings_and_preparing_need_no_torch() -> None:
    told = "import sys, train.sft; train.sft.Sft, train.sft.prepare; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", told], check=True)
