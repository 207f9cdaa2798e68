"""Mixtures from settings and files: domains by name, sums checked, names that do not depend on order."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.proxies.mixtures import mixtures_of, name_of
from train.proxies.settings import Proxies, ProxyError

DOMAINS = ("books", "code", "web")
SIZES = {"tiny": {"layers": 1, "width": 16, "heads": 2}}


def asked(mixtures=(), file=None):
    return mixtures_of(Proxies(mixtures=mixtures, mixtures_file=file, sizes=SIZES, tokens=1000), DOMAINS)


def test_a_list_is_named_after_its_weights_and_a_map_by_its_keys():
    (listed,) = asked([{"web": 0.75, "code": 0.25}])
    (named,) = asked({"mostly-web": {"web": 0.75, "code": 0.25}})
    assert listed.name == name_of({"web": 0.75, "code": 0.25}) == name_of({"code": 0.25, "books": 0.0, "web": 0.75})
    assert named.name == "mostly-web"
    assert listed.weights == named.weights == {"books": 0.0, "code": 0.25, "web": 0.75}
    assert list(listed.weights) == list(DOMAINS)


def test_sums_that_are_off_by_rounding_become_one():
    (made,) = asked([{"web": 0.3333, "code": 0.3333, "books": 0.3333}])
    assert sum(made.weights.values()) == pytest.approx(1.0, abs=1e-15)


def test_the_same_weights_twice_are_one_mixture():
    assert len(asked([{"web": 1.0}, {"code": 1.0}, {"web": 1}])) == 2


@given(st.permutations(DOMAINS))
def test_a_name_does_not_depend_on_the_order_of_domains(order):
    weights = {"books": 0.2, "code": 0.3, "web": 0.5}
    assert name_of({domain: weights[domain] for domain in order}) == name_of(weights)


def test_files_of_each_kind_hold_the_same(tmp_path):
    rows = [{"mixture": "a", "web": 0.5, "code": 0.5}, {"mixture": "b", "web": 1.0, "code": 0.0}]
    maps = {row["mixture"]: {name: row[name] for name in ("web", "code")} for row in rows}
    (tmp_path / "m.csv").write_text("mixture,web,code\na,0.5,0.5\nb,1.0,0.0\n")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "m.parquet")
    (tmp_path / "m.json").write_text(json.dumps(maps))
    (tmp_path / "m.yaml").write_text("a: {web: 0.5, code: 0.5}\nb: {web: 1.0}\n")
    made = [asked(file=str(tmp_path / f"m.{kind}")) for kind in ("csv", "parquet", "json", "yaml")]
    assert made[0] == made[1] == made[2] == made[3]
    assert [one.name for one in made[0]] == ["a", "b"]
    (tmp_path / "unnamed.csv").write_text("web,code\n0.5,0.5\n")
    assert asked(file=str(tmp_path / "unnamed.csv"))[0].name == name_of({"web": 0.5, "code": 0.5})


@pytest.mark.parametrize(
    ("mixtures", "told"),
    [
        ([{"wbe": 1.0}], "mixtures[0]: no domain 'wbe'; did you mean 'web'"),
        ([{"news!": 1.0}], "mixtures[0]: no domain 'news!'; the tokens have books, code, web"),
        ([{"web": 1.0}, {"web": 0.5}], "mixtures[1]: weights sum to 0.5; they must sum to 1 (within 0.001)"),
        ([{"web": 1.0, "code": 0.0011}], "mixtures[0]: weights sum to 1.0011; they must sum to 1"),
        ([{}], "mixtures[0]: weights sum to 0;"),
    ],
)
def test_what_is_no_mixture_is_refused(mixtures, told):
    with pytest.raises(ProxyError) as caught:
        asked(mixtures)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("m.csv", "mixture,web\na,1\na,0.5\n", "row 1: weights sum to 0.5"),
        ("m.csv", "mixture,web,code\na,1,0\na,0.5,0.5\n", "row 1: 'a' already names another mixture"),
        ("m.csv", "mixture,web\n../x,1\n", "row 0: '../x' cannot name a folder"),
        ("m.csv", "web\nmuch\n", "row 0: weight 'much' of 'web' is not a number from 0 on"),
        ("m.csv", "web,code\n0.5,\n", "row 0: weight None of 'code' is not a number from 0 on"),
        ("m.csv", "web\n-1\n", "row 0: weight -1 of 'web' is not a number from 0 on"),
        ("m.csv", "web\n", "m.csv: holds no mixture"),
        ("m.yaml", "a: 1\n", "m.yaml.a: is not a map {domain: weight}"),
        ("m.yaml", "just words", "m.yaml: is neither a list of {domain: weight} nor a map of them by name"),
        ("m.yaml", "a: [", "m.yaml: cannot be read as yaml"),
        ("m.parquet", "not parquet", "m.parquet: cannot be read as parquet"),
        ("m.xlsx", "", "ends in none of .csv, .parquet, .yaml, .json"),
        ("m.csv", "web,web\n0.5,0.5\n", "m.csv: a column stands twice"),
        ("m.csv", "web,code\n1\n", "row 0: 1 values, where the first line names 2 columns"),
        ("m.yaml", "a: {web: 1}\na: {code: 1}\n", "m.yaml: cannot be read as yaml: 'a' stands twice"),
        ("m.json", '[{"web": 0.5, "web": 1}]', "m.json: cannot be read as json: 'web' stands twice"),
        ("m.json", "[" * 100_000, "m.json: cannot be read as json: "),
        ("m.json", '[{"web": NaN}]', "weight nan of 'web' is not a number from 0 on"),
    ],
)
def test_a_file_that_holds_no_mixtures_is_refused(tmp_path, name, text, told):
    (tmp_path / name).write_text(text)
    with pytest.raises(ProxyError) as caught:
        asked(file=str(tmp_path / name))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ProxyError, match=r"mixtures_file: /nowhere/m\.csv does not exist"):
        asked(file="/nowhere/m.csv")


@pytest.mark.parametrize(("name", "text"), [("m.csv", "mixture,web\nno,1\n"), ("m.yaml", "no: {web: 1}\n")])
def test_a_name_is_the_text_that_it_is(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert [mixture.name for mixture in asked(file=str(tmp_path / name))] == ["no"]


def test_a_folder_is_no_file_of_mixtures(tmp_path):
    (tmp_path / "m.csv").mkdir()
    with pytest.raises(ProxyError, match=r"m\.csv: is a directory"):
        asked(file=str(tmp_path / "m.csv"))
