"""The recipe: what is read, and each mistake with its whole message."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from jobs import recipe_lines, steps
from jobs.errors import MistakesError, UserError
from jobs.recipe import Recipe, build, load
from jobs.steps import StepKind

CONFIG = ConfigDict(extra="forbid")


class FakeStep:
    name: ClassVar[str] = "fake"
    version: ClassVar[int] = 1
    reads: ClassVar[frozenset[str]] = frozenset({"text"})
    adds: ClassVar[pa.Schema] = pa.schema([])


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Extract(FakeStep):
    engine: str = "trafilatura"


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Language(FakeStep):
    keep: tuple[str, ...] = ()
    min_score: float = Field(default=0.65, ge=0, le=1)
    guarded: bool = True

    def __post_init__(self) -> None:
        for label in self.keep:
            if "_" not in label:
                raise ValueError(f"keep: the model gives no label {label!r}; did you mean 'nob_Latn'?")


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Gopher:
    min_words: int | None = Field(default=50, ge=0)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Quality(FakeStep):
    rules: tuple[str, ...] = ("gopher",)
    gopher: Gopher = Gopher()
    words: str | tuple[str, ...] = ()
    span: tuple[float, float] = (3.0, 10.0)


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Minhash(FakeStep):
    bands: int = Field(default=14, ge=1)


FAKES = {"extract": Extract, "language": Language, "quality": Quality, "minhash": Minhash}

GOOD = """\
name: web-en
seed: 17
output: out/web-en
sources:
  - {name: crawl, format: html, paths: ["pages/*.html"], domain: web}
  - {name: books, format: text, paths: [books]}
steps:
  - step: extract
  - step: language
    keep: [eng_Latn]
  - step: quality
    domains: [web]
    gopher: {min_words: 40}
  - step: minhash
"""


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = types.ModuleType("fake_room")
    vars(module).update({cls.__name__: cls for cls in FAKES.values()})
    monkeypatch.setitem(sys.modules, "fake_room", module)
    for kind, cls in FAKES.items():
        scope = steps.STEPS[kind].scope
        fake = StepKind(target=f"fake_room:{cls.__name__}", scope=scope, summary="")
        monkeypatch.setitem(steps.STEPS, kind, fake)
    monkeypatch.chdir(tmp_path)


def read(text: str, *sets: str) -> Recipe:
    Path("r.yaml").write_text(text)
    return load("r.yaml", sets)


def made(recipe: Recipe) -> list[Any]:
    return [entry.step for entry in recipe.steps]


def mistakes(text: str, *sets: str) -> list[str]:
    with pytest.raises(MistakesError) as caught:
        read(text, *sets)
    return list(caught.value.mistakes)


def test_a_recipe_becomes_sources_and_steps() -> None:
    recipe = read(GOOD)
    assert (recipe.name, recipe.seed, recipe.output) == ("web-en", 17, "out/web-en")
    assert [(source.name, source.mixing_domain) for source in recipe.sources] == [("crawl", "web"), ("books", "books")]
    assert [(entry.kind, entry.name, entry.line) for entry in recipe.steps] == [
        ("extract", "extract", 8),
        ("language", "language", 9),
        ("quality", "quality", 11),
        ("minhash", "minhash", 14),
    ]
    assert made(recipe)[1] == Language(keep=("eng_Latn",))
    assert recipe.steps[2].domains == ("web",)
    assert made(recipe)[2] == Quality(gopher=Gopher(min_words=40))


def test_run_settings_have_defaults_and_sizes_have_units() -> None:
    recipe = read(GOOD)
    assert (recipe.keep, recipe.keep_dropped, recipe.max_quarantined) == ("all", 1.0, 0.001)
    assert (recipe.shard_bytes, recipe.memory_bytes) == (64 << 20, 1 << 30)
    changed = read(GOOD + "keep: last\nkeep_dropped: 0\nshard_bytes: 16MiB\nmemory_bytes: 2GB\n")
    assert (changed.keep, changed.keep_dropped, changed.shard_bytes, changed.memory_bytes) == (
        "last",
        0.0,
        16 << 20,
        2 * 10**9,
    )


def test_a_recipe_is_frozen_and_rebuilt_from_its_document() -> None:
    recipe = read(GOOD, "minhash.bands=20")
    with pytest.raises(AttributeError):
        recipe.seed = 3  # type: ignore[misc]
    again = build(recipe.document)
    assert made(again) == made(recipe)
    assert made(build(recipe.document, ["minhash.bands=9"]))[3] == Minhash(bands=9)


MISTAKES = [
    ("seed: 17", "sead: 17", ["r.yaml:2: sead: unknown key; did you mean 'seed'?"]),
    ("seed: 17", "seed: high", ["r.yaml:2: seed: expected a whole number, got 'high'"]),
    ("seed: 17", "seed: 1.5", ["r.yaml:2: seed: expected a whole number, got 1.5"]),
    ("seed: 17", 'seed: "17"', ["r.yaml:2: seed: expected a whole number, got '17'; remove the quotes"]),
    ("seed: 17", "seed: -1", ["r.yaml:2: seed: -1 is below 0, the smallest that is allowed"]),
    ("seed: 17", "seed: true", ["r.yaml:2: seed: expected a whole number, got true"]),
    ("seed: 17", "seed:", ["r.yaml:2: seed: expected a whole number, got nothing"]),
    (
        "name: web-en",
        "name: web en",
        ["r.yaml:1: name: 'web en' is no name of a run; use letters, digits, . _ and -, no spaces"],
    ),
    ("name: web-en", "name: 1.10", ['r.yaml:1: name: expected text, got 1.10; quote it: "1.10"']),
    ("seed: 17", "keep: lst", ["r.yaml:2: keep: 'lst' is not one of 'last' or 'all'; did you mean 'last'?"]),
    ("seed: 17", "keep_dropped: 1.1", ["r.yaml:2: keep_dropped: 1.1 is above 1, the largest that is allowed"]),
    (
        "seed: 17",
        "shard_bytes: 64M",
        ["r.yaml:2: shard_bytes: '64M' is no size; write 64MiB (2^20), 64MB (10^6) or a number of bytes"],
    ),
    ("seed: 17", "synth: {}", ["r.yaml:2: synth.tasks: is missing; add tasks: ..."]),
    ("seed: 17", "mix: {}", ["r.yaml:2: mix: there are no tokens to find a mixture of; add a section tokens:"]),
    ("seed: 17", "name: again", ["r.yaml:2: name: stands twice (first on line 1); remove one"]),
    ("output: out/web-en\n", "", ["r.yaml:1: output: is missing; add output: ..."]),
    ("step: language", "step: langauge", ["r.yaml:9: steps.2: unknown step 'langauge'; did you mean 'language'?"]),
    ("keep: [eng_Latn]", "kep: [eng_Latn]", ["r.yaml:10: language.kep: unknown key; did you mean 'keep'?"]),
    (
        "keep: [eng_Latn]",
        "keep: eng_Latn",
        ["r.yaml:10: language.keep: expected a list, got 'eng_Latn'; write [eng_Latn]"],
    ),
    (
        "keep: [eng_Latn]",
        "keep: [no]",
        ["r.yaml:10: language.keep: the model gives no label 'no'; did you mean 'nob_Latn'?"],
    ),
    (
        "keep: [eng_Latn]",
        "guarded: yes",
        ["r.yaml:10: language.guarded: expected true or false, got 'yes'; write true"],
    ),
    (
        "keep: [eng_Latn]",
        "min_score: 1.5",
        ["r.yaml:10: language.min_score: 1.5 is above 1, the largest that is allowed"],
    ),
    ("keep: [eng_Latn]", "keep: [1.10]", ['r.yaml:10: language.keep: expected text, got 1.10; quote it: "1.10"']),
    ("min_words: 40", "min_word: 40", ["r.yaml:13: quality.gopher.min_word: unknown key; did you mean 'min_words'?"]),
    ("gopher: {min_words: 40}", "gopher: 40", ["r.yaml:13: quality.gopher: expected a mapping, got 40"]),
    (
        "gopher: {min_words: 40}",
        "words: 3",
        ['r.yaml:13: quality.words: expected text or a list, got 3; quote it: "3"'],
    ),
    ("gopher: {min_words: 40}", "span: [1]", ["r.yaml:13: quality.span: has too few values; number 2 is missing"]),
    ("gopher: {min_words: 40}", "span: [1, 2, 3]", ["r.yaml:13: quality.span: has 3 values; at most 2 fit"]),
    (
        "domains: [web]",
        "domains: [wep]",
        ["r.yaml:12: quality.domains: no source has the domain 'wep'; did you mean 'web'?"],
    ),
    (
        "domains: [web]",
        "domains: web",
        ["r.yaml:12: quality.domains: expected a list of domains, got 'web'; write [books, web]"],
    ),
    (
        "  - step: minhash\n",
        "  - {step: minhash, domains: [web]}\n",
        ["r.yaml:14: minhash.domains: does not apply: minhash compares all documents with each other; remove domains:"],
    ),
    (
        "  - step: minhash\n",
        "  - minhash\n",
        ["r.yaml:14: steps.4: expected a mapping, got 'minhash'; write - step: minhash"],
    ),
    ("  - step: minhash\n", "  - 3\n", ["r.yaml:14: steps.4: expected a mapping, got 3; write - step: KIND"]),
    (
        "  - step: minhash\n",
        "  - step: language\n",
        ["r.yaml:14: language: stands twice (first on line 9); give one of them a name: of its own"],
    ),
    (
        "  - step: minhash\n",
        "  - {step: minhash, name: Near Twins}\n",
        ["r.yaml:14: name: 'Near Twins' is no step name; use small letters, digits, _ and -"],
    ),
    (
        "  - step: minhash\n",
        "  - {step: minhash, name: exact}\n",
        ["r.yaml:14: name: 'exact' is another kind of step, so the two could not be told apart; choose another"],
    ),
    (
        "  - step: extract\n",
        "",
        ["r.yaml:7: steps: source crawl is html; add - step: extract as the first step"],
    ),
    (
        "  - step: minhash\n",
        "  - {step: extract, name: again}\n",
        ["r.yaml:14: extract: stands twice; a document is extracted once, remove one"],
    ),
    ("name: books", "name: crawl", ["r.yaml:6: sources.crawl: a source of this name stands on line 5; choose another"]),
    ("paths: [books]", "path: [books]", ["r.yaml:6: sources.books.path: unknown key; did you mean 'paths'?"]),
    (
        "output: out/web-en",
        "output: ${NO_SUCH_NAME}/x",
        ["r.yaml:3: output: ${NO_SUCH_NAME} is not set in the environment; try: export NO_SUCH_NAME=..."],
    ),
    (
        "output: out/web-en",
        "output: ${oc.env}/x",
        [
            "r.yaml:3: output: ${oc.env} names no environment variable; "
            "only ${NAME} is replaced, $${...} stands for itself"
        ],
    ),
    ("seed: 17", "\tseed: 17", ["r.yaml:2: not YAML: a tab; indent with spaces"]),
    (
        "seed: 17",
        "seed: [1, 2",
        ["r.yaml:3: not YAML: expected ',' or ']', but got ':' (while parsing a flow sequence that begins on line 2)"],
    ),
    (
        "seed: 17",
        "seed: &a 17",
        ["r.yaml:2: anchors (&) and aliases (*) are not used in recipes; write it out or quote it"],
    ),
    (
        "seed: 17",
        "seed: !!int 17",
        ["r.yaml:2: tags such as tag:yaml.org,2002:int are not used in recipes; remove it or quote the text"],
    ),
]


@pytest.mark.parametrize(
    ("right", "wrong", "said"), MISTAKES, ids=[wrong.strip() or "nothing" for _, wrong, _ in MISTAKES]
)
def test_each_mistake_is_a_line_with_place_and_mend(right: str, wrong: str, said: list[str]) -> None:
    assert right in GOOD
    assert mistakes(GOOD.replace(right, wrong)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "r.yaml:1: is empty; begin with name:, output:, sources: and steps:"),
        ("# nothing\n", "r.yaml:1: is empty; begin with name:, output:, sources: and steps:"),
        ("- a\n", "r.yaml:1: expected a mapping of keys; begin with name:, output:, sources: and steps:"),
        ("words\n", "r.yaml:1: expected a mapping of keys; begin with name:, output:, sources: and steps:"),
        (GOOD + "---\nname: two\n", "r.yaml:15: not YAML: a second document; a recipe is one, remove the ---"),
        ("name: a\nx: " + "[" * 40 + "]" * 40, "r.yaml:2: nested more than 32 deep; no recipe needs that"),
    ],
)
def test_what_is_no_recipe_at_all(text: str, said: str) -> None:
    assert mistakes(text) == [said]


def test_missing_sections_say_how_to_begin() -> None:
    assert mistakes("name: a\noutput: b\n") == [
        "r.yaml:1: sources: is missing; begin with sources: and a line "
        "- {name: books, format: jsonl, paths: [books/*.jsonl.gz]}",
        "r.yaml:1: steps: is missing; begin with steps: and a line - step: extract",
    ]
    assert mistakes(GOOD[: GOOD.index("steps:")] + "steps: []\n") == [
        "r.yaml:7: steps: is empty; begin with steps: and a line - step: extract"
    ]


def test_all_mistakes_come_at_once_in_the_order_of_the_file() -> None:
    wrong = GOOD.replace("seed: 17", "seed: x").replace("format: text", "format: txt").replace("keep: [", "kep: [")
    assert mistakes(wrong, "minhash.bands=0") == [
        "r.yaml:2: seed: expected a whole number, got 'x'",
        "r.yaml:6: sources.books.format: 'txt' is not one of 'warc', 'wet', 'arc', 'html', 'jsonl', 'parquet', 'csv', "
        "'text', 'markdown', 'code' or 'messages'; did you mean 'text'?",
        "r.yaml:10: language.kep: unknown key; did you mean 'keep'?",
        "--set minhash.bands=0: minhash.bands: 0 is below 1, the smallest that is allowed",
    ]


def test_bytes_that_are_not_utf8_and_control_characters_are_placed() -> None:
    Path("r.yaml").write_bytes(GOOD.encode().replace(b"web-en\nsources", b"w\xe9b\nsources"))
    with pytest.raises(MistakesError, match=r"^r.yaml:3: byte 0xe9 is not UTF-8; save the recipe as UTF-8$"):
        load("r.yaml")
    assert mistakes(GOOD.replace("seed: 17", "seed: \x07")) == ["r.yaml:2: a control character (0x07); remove it"]


def test_an_absent_recipe_names_its_neighbour() -> None:
    Path("quickstart.yaml").write_text(GOOD)
    with pytest.raises(UserError) as caught:
        load("quikstart.yaml")
    assert str(caught.value) == "quikstart.yaml: there is no such recipe; did you mean 'quickstart.yaml'?"
    with pytest.raises(UserError) as caught:
        load(".")
    assert str(caught.value) == ".: is a folder, a recipe is a YAML file; recipes in .: quickstart.yaml"


# --set


def test_a_set_reaches_steps_by_kind_or_name_sources_and_keys() -> None:
    text = GOOD.replace("  - step: minhash\n", "  - {step: minhash, name: near}\n")
    recipe = read(text, "near.bands=20", "quality.gopher.min_words=30", "seed=3", "sources.crawl.domain=news",
                  "quality.domains=[news]", "output=s3://bucket/x", "language.keep=[deu_Latn, fra_Latn]")  # fmt: skip
    assert made(recipe)[3] == Minhash(bands=20)
    assert made(recipe)[2] == Quality(gopher=Gopher(min_words=30))
    assert (recipe.seed, recipe.output, recipe.sources[0].domain) == (3, "s3://bucket/x", "news")
    assert made(recipe)[1] == Language(keep=("deu_Latn", "fra_Latn"))
    assert made(read(text, "minhash.bands=21"))[3] == Minhash(bands=21)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        ("minhsh.bands=20", "there is no step or key 'minhsh' in this recipe; did you mean 'minhash'?"),
        ("minhash.band=20", "minhash.band: unknown key; did you mean 'bands'?"),
        ("minhash.bands=many", "minhash.bands: expected a whole number, got 'many'"),
        ("minhash.bands=[1", "not YAML: expected ',' or ']', but got '<stream end>'"),
        ("minhash=3", "minhash is a step; name one of its settings: --set minhash.SETTING=VALUE"),
        ("minhash.bands", "is not KEY=VALUE; write for example --set minhash.bands=20"),
        (".bands=3", "is not KEY=VALUE; write for example --set minhash.bands=20"),
        ("sed=3", "there is no step or key 'sed' in this recipe; did you mean 'seed'?"),
        ("seed.x=3", "seed holds no settings of its own"),
        ("sources.crowl.domain=x", "there is no source 'crowl'; did you mean 'crawl'?"),
    ],
)
def test_a_wrong_set_says_so(one: str, said: str) -> None:
    assert mistakes(GOOD, one) == [f"--set {one}: {said}"]


def test_a_kind_that_stands_twice_is_addressed_by_name() -> None:
    text = GOOD.replace("  - step: minhash\n", "  - {step: minhash, name: near}\n  - {step: minhash, name: nearer}\n")
    assert mistakes(text, "minhash.bands=20") == [
        "--set minhash.bands=20: minhash stands 2 times; use a step's name: near, nearer"
    ]
    assert made(read(text, "nearer.bands=9"))[3:] == [Minhash(), Minhash(bands=9)]


# Scalars and environment


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("12:30:00", "12:30:00"),
        ("1e3", 1000.0),
        ("010", "010"),
        ("100_000", 100_000),
        ("0x10", 16),
        ("2024-01-01", "2024-01-01"),
        ("~", None),
        ("", None),
        (".5", 0.5),
        ("-3", -3),
        ("9" * 40, "9" * 40),
        ("1.", 1.0),
        ("-2.5e-3", -0.0025),
        (".", "."),
        ("1_", "1_"),
    ],
)
def test_plain_scalars_are_read_as_yaml_1_2_does(text: str, value: Any) -> None:
    assert recipe_lines.resolve(text) == value
    assert type(recipe_lines.resolve(text)) is type(value)


def test_environment_variables_stand_anywhere_in_text_and_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "out/${SEED}")
    monkeypatch.setenv("SEED", "23")
    recipe = read(GOOD.replace("out/web-en", '"${PLACE}/$${SEED}"').replace("seed: 17", "seed: ${SEED}"))
    assert recipe.output == "out/${SEED}/${SEED}"
    assert recipe.seed == 23


def lines_of(call: Callable[[], object]) -> Sequence[str]:
    try:
        call()
    except MistakesError as error:
        return error.mistakes
    return ()


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_lines(text: str) -> None:
    for line in lines_of(lambda: recipe_lines.parse(text.encode("utf-8", "surrogatepass"), "r.yaml")):
        assert line.startswith("r.yaml:")
        assert "\n" not in line


KEYS = st.sampled_from(["name", "output", "seed", "steps", "sources", "tokens", "keep", "x"])
INNER_KEYS = st.sampled_from(["step", "name", "format", "paths", "keep", "domains"])
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(INNER_KEYS, inner), max_leaves=8
)


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES))
def test_any_values_are_refused_in_lines(document: dict[str, Any]) -> None:
    assert lines_of(lambda: build(document))
