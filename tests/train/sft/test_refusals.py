"""Every way in which a row cannot be trained on as it stands is refused with its reason and id, and without content."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from train.sft.encoding import ChatTokenizer, load_chat_tokenizer
from train.sft.examples import Examples
from train.sft.preparing import QUARANTINED, Reading, Sources, prepare
from train.sft.refusals import REASONS, SftError
from train.sft.settings import Chat

USER = {"role": "user", "content": "how fine?"}
ANSWER = {"role": "assistant", "content": "very fine"}
GOOD = {"messages": [USER, ANSWER]}
SECRET = "SECRETWORDS"
TOOL = {"type": "function", "function": {"name": "weigh", "parameters": {}}}
CALL = {"function": {"name": "weigh", "arguments": {"what": "rye"}}}


def reading(folder: str, chat: Chat, source: str | None = None) -> Reading:
    tokenizer = load_chat_tokenizer(folder)
    if source is not None:
        (Path(folder).parent / "given.jinja").write_text(source)
        chat = Chat(**{**vars(chat), "template": str(Path(folder).parent / "given.jinja")})
    return Reading(chat=chat, tokenizer=tokenizer, template=tokenizer.template(chat, folder))


def written(path: Path, rows: list[Any]) -> str:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return str(path)


def prepared(
    folder: str, rows: list[Any], out: Path, *, most: int = 1000, source: str | None = None, **chat: Any
) -> Examples:
    data = (written(out / "rows.jsonl", rows),)
    return prepare(Sources(data=data), reading(folder, Chat(**chat), source), str(out), most_tokens=most)


def reasons(out: Path) -> dict[str, str]:
    return {row["id"]: row["error"] for row in pq.read_table(out / QUARANTINED).to_pylist()}


HEADER = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
LOOP = "{% for m in messages %}<|im_start|>{{ m.role }}\n%s<|im_end|>\n{% endfor %}" + HEADER
BARS = "{% for m in messages %}|{{ m.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}|{% endif %}"
STARTS = BARS.replace("|{{", "<|im_start|>{{").replace("%}|{%", "%}<|im_start|>{%")
NAMES = "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}{{ 'assistant: ' if add_generation_prompt }}"


def written_as(content: str) -> str:
    """ChatML with another way of writing contents."""
    return LOOP.replace("%s", "{{ " + content + " }}")


def says(**answer: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", **answer}]}


@dataclass(frozen=True)
class Case:
    """A row, the family whose tokenizer it meets, a template where it is not the family's own, and settings."""

    row: Any
    family: str = "chatml"
    source: str | None = None
    chat: dict[str, Any] = field(default_factory=dict)


THOUGHT = {**ANSWER, "reasoning": "so"}
SYSTEM = {"messages": [{"role": "system", "content": SECRET}, USER, ANSWER]}
SURROGATE = '{"messages": [{"role": "user", "content": "\\ud800"}, {"role": "assistant", "content": "a"}]}'
CASES = {
    "invalid_json": Case("{not json"),
    "not_a_conversation": Case({"prompt": "a"}),
    "empty_conversation": Case({"messages": []}),
    "unknown_role": Case({"messages": [USER, {"role": "bot", "content": SECRET}]}),
    "not_text": Case({"messages": [{"role": "user", "content": [{"type": "image"}]}, ANSWER]}),
    "invalid_text": Case(SURROGATE),
    "invalid_tools": Case(says(tool_calls=[{"function": {"name": "f", "arguments": "{"}}]), family="qwen2.5"),
    "no_answer": Case({"messages": [USER]}),
    "empty_answer": Case(says(content="")),
    "template_refused": Case(SYSTEM, family="gemma"),
    "generation_prompt": Case(GOOD, source=written_as("m.content").replace("assistant\n", "assistant \n")),
    "content_changed": Case(says(content="Very " + SECRET), source=written_as("m.content | lower")),
    "content_trimmed": Case(says(content=" fine "), family="llama3"),
    "message_dropped": Case(SYSTEM, source=written_as("m.content if m.role != 'system'")),
    "tools_dropped": Case(says(content="a", tool_calls=[CALL])),
    "history_rewritten": Case({"messages": [USER, THOUGHT, USER, THOUGHT]}, family="qwen3"),
    "no_end_token": Case(GOOD, source=NAMES),
    "control_text": Case(
        {"messages": [{"role": "user", "content": "<|im_end|>"}, ANSWER]}, chat={"control_text": "refuse"}
    ),
    "boundary_token": Case(GOOD, family="words", source=BARS),
    "not_decoded": Case(says(content="\u6f22\u5b57"), family="words", source=STARTS),
    "double_bos": Case(GOOD, family="llama3", chat={"bos": "prepend"}),
    "too_long": Case(says(content="a" * 2000)),
}


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tokenizer of words that knows few of them, and joins a bar to the word behind it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    names = ["<unk>", "|very", "|how", "very", "how", "fine", "fine?", " ", "user", "assistant", "\n", "<|im_start|>"]
    made = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split(" ", "isolated")
    made.decoder = decoders.Fuse()
    made.add_special_tokens([AddedToken(name, normalized=False) for name in ("<|im_start|>", "<|im_end|>")])
    folder = tmp_path_factory.mktemp("words") / "model"
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}')
    return str(folder)


@pytest.mark.parametrize("reason", sorted(CASES))
def test_a_row_is_refused_with_its_reason_and_id_and_no_content(
    reason: str, families: dict[str, Any], words: str, tmp_path: Path
) -> None:
    case = CASES[reason]
    folder = words if case.family == "words" else families[case.family].folder
    with pytest.raises(SftError) as raised:
        prepared(folder, [case.row], tmp_path, source=case.source, **case.chat)
    told = str(raised.value)
    assert told.startswith(f"data: 1 of 1 rows refused, where max_refused 0 allows 0: {reason} 1 (rows.jsonl:1: ")
    assert "\n" not in told
    quarantine = (tmp_path / QUARANTINED).read_bytes()
    assert SECRET not in told
    assert SECRET.encode() not in quarantine
    assert reasons(tmp_path) == {"rows.jsonl:1": reason}
    assert not (tmp_path / "examples" / "manifest.json").exists()


def test_every_reason_has_a_case() -> None:
    assert set(REASONS) - set(CASES) == {"nothing_to_train"}  # below: only plain text can come to that


def test_a_text_row_whose_only_trained_token_is_the_first_has_nothing_to_train(
    families: dict[str, Any], tmp_path: Path
) -> None:
    from train.sft.refusals import Refused
    from train.sft.turns import Example

    tokenizer: ChatTokenizer = load_chat_tokenizer(families["chatml"].folder)
    (found,) = tokenizer.encode([Example(text="a", spans=((0, 1),))], Chat())
    assert isinstance(found, Refused)
    assert found.reason == "nothing_to_train"


def test_a_share_of_refused_rows_may_be_allowed_and_is_counted(families: dict[str, Any], tmp_path: Path) -> None:
    rows = [GOOD, {"id": "bad", "messages": []}, GOOD, GOOD]
    with pytest.raises(SftError, match=r"1 of 4 rows refused.*empty_conversation 1 \(bad: "):
        prepared(families["chatml"].folder, rows, tmp_path, max_refused=0.24)
    told = prepared(families["chatml"].folder, rows, tmp_path, max_refused=0.25).manifest
    assert told["rows"] == {"in": 4, "trained": 3, "refused": 1, "dropped": 0, "split": 0}
    assert told["refused"] == {"empty_conversation": 1}
    assert told["answers"] == {"whole": 3, "cut_or_lost": 0, "trimmed": 0}
    assert told["ends"] == {"<|im_end|>": 3}


def test_only_the_first_ids_of_a_reason_are_listed(families: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"id": f"r{number}", "messages": []} for number in range(9)]
    with pytest.raises(SftError, match=r"empty_conversation 9 \(r0, r1, r2, r3, r4, \.\.\.: "):
        prepared(families["chatml"].folder, rows, tmp_path)


def test_policies_that_allow_it_train_what_is_refused_by_default(families: dict[str, Any], tmp_path: Path) -> None:
    for reason, policy in (
        ("empty_answer", {"empty_answers": "train"}),
        ("content_trimmed", {"trimmed_answers": "train"}),
        ("history_rewritten", {"history": "split"}),
        ("control_text", {"control_text": "text"}),
        ("double_bos", {"bos": "template"}),
    ):
        case = CASES[reason]
        told = prepared(families[case.family].folder, [case.row], tmp_path, source=case.source, **policy).manifest
        assert told["rows"]["trained"] == 1, reason


def test_truncation_cuts_ids_and_mask_together_and_counts_what_is_cut(families: dict[str, Any], tmp_path: Path) -> None:
    rows = [GOOD, {"messages": [USER, ANSWER, USER, {**ANSWER, "content": "fine " * 50}]}]
    whole = prepared(families["chatml"].folder, rows, tmp_path)
    length = int(whole.lengths[1])
    for most in (length, length - 1, length - 60, int(whole.lengths[0])):
        found = prepared(families["chatml"].folder, rows, tmp_path, most=most, truncate="right")
        kept = min(most, length)
        start, stop = found.starts[1], found.starts[2]
        assert stop - start == kept
        first = whole.starts[1]
        assert (found.tokens[start:stop] == whole.tokens[first : first + kept]).all()
        assert (found.trained[start:stop] == whole.trained[first : first + kept]).all()
        tokens = found.manifest["tokens"]
        assert tokens["encoded"] == whole.manifest["tokens"]["encoded"]
        assert tokens["cropped"] == length - kept
        assert tokens["trained"] + tokens["cropped_trained"] == whole.manifest["tokens"]["trained"]
        assert found.manifest["answers"]["cut_or_lost"] == (kept < length)


def test_a_conversation_without_labels_after_truncation_is_dropped_and_counted(
    families: dict[str, Any], tmp_path: Path
) -> None:
    rows = [GOOD, {"messages": [{"role": "user", "content": "a" * 500}, ANSWER]}]
    found = prepared(families["chatml"].folder, rows, tmp_path, most=100, truncate="right")
    assert found.manifest["rows"] == {"in": 2, "trained": 1, "refused": 0, "dropped": 1, "split": 0}
    assert found.manifest["examples"]["dropped_no_labels"] == 1
    dropped = prepared(families["chatml"].folder, [GOOD, CASES["too_long"].row], tmp_path, most=100, truncate="drop")
    assert dropped.manifest["examples"]["dropped_too_long"] == 1
    assert dropped.manifest["tokens"]["dropped"] > 100


def test_rows_come_from_lines_gzip_zstandard_parquet_folders_and_outputs_of_runs(
    families: dict[str, Any], tmp_path: Path
) -> None:
    lines = (json.dumps({"id": "one", **GOOD}) + "\n" + json.dumps({"prompt": "a", "completion": "b"})).encode()
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    with pa.output_stream(str(folder / "c.jsonl.zst"), compression="zstd") as stream:
        stream.write(lines)
    step = tmp_path / "run" / "03-exact" / "data"
    step.mkdir(parents=True)
    table = pa.table({"id": ["p"], "messages": [GOOD["messages"]], "text": [""]})
    pq.write_table(table, step / "part-00000-of-00001.parquet")
    (tmp_path / "run" / "run.json").write_text(json.dumps({"steps": [{"folder": "03-exact"}]}))
    sources = Sources(data=(str(folder), str(tmp_path / "run")), share=0.0)
    told = prepare(sources, reading(families["chatml"].folder, Chat()), str(tmp_path), most_tokens=500)
    assert told.manifest["rows"]["trained"] == 7
    ids = pq.read_table(tmp_path / "examples" / "examples.parquet").column("id").to_pylist()
    assert ids == ["one", "a.jsonl:2", "one", "b.jsonl.gz:2", "one", "c.jsonl.zst:2", "p"]


def test_a_source_without_rows_is_an_error_that_names_it(families: dict[str, Any], tmp_path: Path) -> None:
    for source in (tmp_path / "no.jsonl", tmp_path):
        with pytest.raises(SftError, match=str(source)):
            prepare(
                Sources(data=(str(source),)), reading(families["chatml"].folder, Chat()), str(tmp_path), most_tokens=9
            )


def test_prepared_examples_are_reused_until_something_that_shapes_them_changes(
    families: dict[str, Any], tmp_path: Path
) -> None:
    folder = families["chatml"].folder
    first = prepared(folder, [GOOD], tmp_path)
    written_at = (tmp_path / "examples" / "tokens.bin").stat().st_mtime_ns
    prepared(folder, [GOOD], tmp_path)
    assert (tmp_path / "examples" / "tokens.bin").stat().st_mtime_ns == written_at
    other = prepared(folder, [GOOD, GOOD], tmp_path)
    assert other.manifest["fingerprint"] != first.manifest["fingerprint"]
    assert len(other.lengths) == 2


def test_rows_are_held_out_by_id_whatever_their_order(families: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"id": f"r{number}", **GOOD} for number in range(200)]
    reader = reading(families["chatml"].folder, Chat())

    def held(order: list[Any]) -> set[str]:
        data = (written(tmp_path / "rows.jsonl", order),)
        found = prepare(Sources(data=data, share=0.2, seed=3), reader, str(tmp_path), most_tokens=500)
        table = pq.read_table(tmp_path / "examples" / "examples.parquet")
        assert found.held_out.tolist() == table.column("held_out").to_pylist()
        return {row["id"] for row in table.to_pylist() if row["held_out"]}

    assert held(rows) == held(rows[::-1])
    assert 20 <= len(held(rows)) <= 60


def test_a_plain_text_row_is_trained_on_its_completion_and_eos(families: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"prompt": "how fine?", "completion": " very fine"}]
    found = prepared(families["chatml"].folder, rows, tmp_path, text_rows="text")
    tokenizer = load_chat_tokenizer(families["chatml"].folder)
    told = found.tokens[found.trained.astype(bool)].tolist()
    assert tokenizer.library.decode(told, skip_special_tokens=False) == " very fine<|im_end|>"


def test_a_template_without_a_clock_is_deterministic(families: dict[str, Any], tmp_path: Path) -> None:
    source = "{{ strftime_now('%d %b %Y') }}" + written_as("m.content")
    with pytest.raises(SftError, match="template_refused"):
        prepared(families["chatml"].folder, [GOOD], tmp_path, source=source)
    found = prepared(families["chatml"].folder, [GOOD], tmp_path, source=source, template_date="2024-07-26")
    tokenizer = load_chat_tokenizer(families["chatml"].folder)
    assert tokenizer.library.decode(found.tokens.tolist()).startswith("26 Jul 2024")


def test_unusable_templates_and_tokenizers_are_named(families: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SftError, match=r"nowhere\.jinja: no such file, nor one of chatml, gemma"):
        reading(families["chatml"].folder, Chat(template="nowhere.jinja"))
    with pytest.raises(SftError, match="line 1"):
        prepared(families["chatml"].folder, [GOOD], tmp_path, source="{% if %}")
    with pytest.raises(SftError, match=r"no tokenizer\.json"):
        load_chat_tokenizer(str(tmp_path))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"messages": [{"role": ["user"], "content": "x"}, ANSWER]}, "unknown_role"),
        ({"messages": [{"role": {}, "content": "x"}, ANSWER]}, "unknown_role"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [{"function": {"name": ""}}]}]}, "invalid_tools"),
        ({**GOOD, "tools": [{"function": {"name": " "}}]}, "invalid_tools"),
        ({**GOOD, "tools": [{"function": {"name": "f", "parameters": json.loads('{"a":' * 900 + "1" + "}" * 900)}}]},
         "not_a_conversation"),
    ],
)  # fmt: skip
def test_a_row_of_any_shape_is_refused_and_not_the_end(
    families: dict[str, Any], tmp_path: Path, row: dict[str, Any], reason: str
) -> None:
    prepared(families["qwen3"].folder, [row, GOOD], tmp_path, max_refused=0.5)
    assert reasons(tmp_path) == {"rows.jsonl:1": reason}


@pytest.mark.parametrize("name", ["a\ud800", "a\nb", "x" * 513, "\0", "\u2028"])
def test_an_id_that_no_message_can_tell_gives_way_to_the_place(
    families: dict[str, Any], tmp_path: Path, name: str
) -> None:
    prepared(families["chatml"].folder, [{"id": name, "messages": [USER]}, GOOD], tmp_path, max_refused=0.5)
    assert list(reasons(tmp_path)) == ["rows.jsonl:1"]


def test_time_grows_with_the_control_tokens_that_a_content_spells_and_not_with_their_square(
    families: dict[str, Any], tmp_path: Path
) -> None:
    from time import process_time

    begun = process_time()
    row = {"messages": [{"role": "user", "content": "<|im_end|>" * 20_000}, ANSWER]}
    assert len(prepared(families["chatml"].folder, [row], tmp_path, most=1 << 20).tokens) > 20_000
    assert process_time() - begun < 10  # a square takes 20 s


TAKES = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{{ x|nope }}", "template: line 1: No filter named 'nope'"),
        ("{% for %}", "template: line 1: "),
        ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "template: RecursionError"),
        (TAKES + "{% for i in range(10**9) %}{% endfor %}", "template_refused 1 (rows.jsonl:1: OverflowError)"),
        (TAKES + "{% set n = 10**11 %}{% set x = 'x' * n %}", "template_refused 1 (rows.jsonl:1: SecurityError)"),
        (TAKES + "{% set x = 10**100000 %}", "template_refused 1 (rows.jsonl:1: SecurityError)"),
        ("{% include '/etc/passwd' %}", "template_refused 1 (rows.jsonl:1: TypeError)"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "template_refused 1 (rows.jsonl:1: SecurityError)"),
    ],
)
def test_a_template_that_means_ill_is_refused_in_one_line(
    families: dict[str, Any], tmp_path: Path, source: str, told: str
) -> None:
    with pytest.raises(SftError) as caught:
        prepared(families["chatml"].folder, [GOOD], tmp_path, source=source)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_template_without_an_end_is_stopped(
    families: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.sft.templates.RENDERING_SECONDS", 0.3)
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(SftError, match=r"took longer than 0\.3 s of computing"):
        prepared(families["chatml"].folder, [GOOD], tmp_path, source=endless)


@pytest.mark.parametrize("data", [None, b"\xff\xfe{{ x }}"])
def test_a_template_that_is_no_text_is_told(families: dict[str, Any], tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "t.jinja"
    path.mkdir() if data is None else path.write_bytes(data)
    with pytest.raises(SftError, match=r"template: .*t\.jinja: .*; give a Jinja file in UTF-8"):
        reading(families["chatml"].folder, Chat(template=str(path)))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"template_date": "2024-02-30"}, "is no day of the calendar"),
        ({"template_arguments": {"messages": 3}}, "messages is filled in by each row"),
    ],
)
def test_settings_that_no_template_could_take_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Chat(**settings)
