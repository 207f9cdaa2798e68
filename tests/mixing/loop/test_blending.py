"""The mixture beside an export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mixing.loop.blending import blend
from mixing.loop.mixture_file import MixtureFile, read_mixture
from mixing.observations.points import MixingError
from tests.train.pretrain.made import WORDS, make_text_tokens, texts_of
from train import export

MIXTURE = MixtureFile(
    weights={"code": 0.25, "maths": 0.0, "prose": 0.75}, tokens=1000.0, unique_tokens={"code": 500.0, "prose": 250.0}
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    tokens = make_text_tokens(folder / "tokens", {name: texts_of(name, 6) for name in WORDS})
    told = {to: str(folder / to) for to in ("megatron", "mds", "llmc")}
    for to, destination in told.items():
        export(tokens, to, destination)
    export(tokens, "megatron", str(folder / "one"), by_domain=False)
    export(tokens, "megatron", str(folder / "code"), domains=["code"])
    return folder


def test_megatron_takes_weights_and_prefixes_of_files_that_are_there(exported):
    told = blend(MIXTURE, str(exported / "megatron"))
    flag, *pairs = told["arguments"]
    assert flag == "--data-path"
    assert [float(weight) for weight in pairs[::2]] == [0.25, 0.75]
    assert all(Path(f"{prefix}.{end}").exists() for prefix in pairs[1::2] for end in ("bin", "idx"))
    assert [(one["domain"], one["epochs"]) for one in told["blend"]] == [("code", 0.5), ("prose", 3.0)]
    assert read_mixture(str(exported / "megatron" / "mixture.json")) == MIXTURE


def test_folders_of_other_formats_are_there(exported):
    told = blend(MIXTURE, str(exported / "mds"))
    assert all(Path(one["path"], "index.json").exists() for one in told["blend"])
    assert "arguments" not in told
    assert json.loads((exported / "mds" / "mixture.json").read_text()) == told


@pytest.mark.parametrize(
    ("folder", "line"),
    [
        ("tokens", "holds no export.json; export token shards there first"),
        ("llmc", "llmc takes no weights of sources; export to one of megatron, mds"),
        ("one", "all domains are in one stream there; export again with a stream a domain"),
        ("code", "has no 'prose', which the mixture gives weight; export it, too"),
    ],
)
def test_an_export_without_the_domains_is_refused_in_a_line(exported, folder, line):
    with pytest.raises(MixingError) as caught:
        blend(MIXTURE, str(exported / folder))
    assert str(caught.value).startswith(f"{exported / folder}: {line}")
