"""Tables read as observations: layouts, joins by name, what is left out, and mistakes told with their line."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mixing.observations import MixingError, Observations, Points, read_observations, table, write

WIDE = "run,weight_a,weight_b,loss\nr1,0.25,0.75,2.0\nr2,0.5,0.5,3.0\n"
WEIGHTS = "index,a,b\n1,0.25,0.75\n2,0.5,0.5\n"
LOSSES = "index,x,y\n1,2.0,20\n2,3.0,30\n"
TIDY = "run,seed,parameters,tokens,weight_a,weight_b,metric,value\n"


def saved(folder: Path, text: str, name: str = "runs.csv") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_row_a_run_with_named_columns(tmp_path: Path) -> None:
    read = read_observations(saved(tmp_path, WIDE))
    assert (read.domains, read.metrics, read.runs) == (("a", "b"), ("loss",), ("r1", "r2"))
    assert read.weights.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert read.values.tolist() == [[2.0], [3.0]]
    assert read.seeds.tolist() == [-1, -1]


def test_the_order_of_columns_and_rows_means_nothing_in_two_files(tmp_path: Path) -> None:
    weights = saved(tmp_path, WEIGHTS, "w.csv")
    plain = read_observations(weights, saved(tmp_path, LOSSES, "l.csv"))
    shuffled = read_observations(
        saved(tmp_path, "b,index,a\n0.5,2,0.5\n0.75,1,0.25\n", "w.csv"),
        saved(tmp_path, "y,x,index\n30,3.0,2\n20,2.0,1\n", "l.csv"),
    ).aligned(("a", "b"))
    order = [shuffled.runs.index(run) for run in plain.runs]
    np.testing.assert_array_equal(shuffled.rows(order).weights, plain.weights)
    np.testing.assert_array_equal(shuffled.rows(order).only(plain.metrics).values, plain.values)


@given(order=st.permutations(range(6)), columns=st.permutations(["a", "b", "c"]))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_order_of_losses_and_domains_gives_the_same_runs(
    tmp_path: Path, order: list[int], columns: list[str]
) -> None:
    weights = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], 6)
    at = {name: "abc".index(name) for name in columns}
    rows = [",".join([str(run), *(repr(float(weights[run, at[name]])) for name in columns)]) for run in range(6)]
    losses = [f"{run},{run * 1.5}" for run in order]
    read = read_observations(
        saved(tmp_path, "\n".join([f"id,{','.join(columns)}", *rows]), "w.csv"),
        saved(tmp_path, "\n".join(["id,loss", *losses]), "l.csv"),
    ).aligned(("a", "b", "c"))
    np.testing.assert_allclose(read.weights, weights, rtol=1e-12)
    assert read.values[:, 0].tolist() == [run * 1.5 for run in range(6)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no row"),
        ("run,weight_a,loss\n", "holds no row"),
        ("run,weight_a,weight_a,loss\nr,1,0,1\n", "line 1: the column 'weight_a' stands twice"),
        (WIDE + "r3,0.5,0.5\n", "line 4: 3 cells, where the first line names 4 columns"),
        (WIDE + "r3,0.5,0.6,1\n", "line 4: sums to 1.1"),
        (WIDE + "r3,half,0.5,1\n", "line 4: weight_a is 'half'"),
        (WIDE + "r3,,0.5,1\n", "line 4: a is nan"),
        (WIDE + "r3,1.2,-0.2,1\n", "line 4: b is -0.2"),
        (WIDE + "r3,0.5,0.5,two\n", "line 4: loss is 'two'"),
        (WIDE + ",0.5,0.5,2\n", "line 4: run is empty"),
        (WIDE + "r1,0.25,0.75,2.5\n", r"line 4: loss of run 'r1' is 2.5, but 2 at .*line 2"),
        (WIDE + "r1,0.5,0.5,2.0\n", r"line 4: run 'r1' has 0.5 of a, but 0.25 at .*line 2"),
        ("run,a,b,loss\nr,0.5,0.5,1\n", "no column of weights"),
        ("run,weight_a,weight_b\nr,0.5,0.5\n", "no column of a metric"),
        ("run,weight_a,tokens,loss\nr,1,-5,1\n", "line 2: tokens is -5"),
        ("run,weight_a,tokens,loss\nr,1,many,1\n", "line 2: tokens is 'many'"),
        ("run,weight_a,unique_tokens_a,loss\nr,1,-5,1\n", "line 2: unique_tokens_a is -5"),
        ('run,weight_a,loss\nr,"1,1\n', "is no CSV"),
        (TIDY + "r,0,1e6,1e8,0.5,0.5,,2\n", "line 2: a value without a metric"),
        ("run,status,weight_a,loss\nr,failed,1,\n", "every run failed"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(tmp_path: Path, text: str, told: str) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(MixingError, match=told) as error:
        read_observations(path)
    assert str(error.value).startswith(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("weights", "losses", "key", "told"),
    [
        (WEIGHTS, "number,x\n1,2\n", None, "never by their order"),
        (WEIGHTS, LOSSES, "name", "no column 'name' to join by"),
        (WEIGHTS, LOSSES + "7,1,1\n", None, "l.csv: line 4: index is '7', which has no weights"),
        (WEIGHTS, LOSSES + "1,2.5,20\n", None, r"l.csv: line 4: x of run 'w-1' is 2.5, but 2 at .*line 2"),
        (WEIGHTS + "1,0.5,0.5\n", LOSSES, None, r"w.csv: line 4: run 'w-1' has 0.5 of a"),
        (WEIGHTS, "index,x\n2,2\n1,two\n", None, "l.csv: line 3: x is 'two'"),
        (WEIGHTS, "index,x\n1,good\n2,bad\n", None, "no column of a metric"),
    ],
)
def test_a_mistake_in_two_files_is_told(tmp_path: Path, weights: str, losses: str, key: str | None, told: str) -> None:
    with pytest.raises(MixingError, match=told):
        read_observations(saved(tmp_path, weights, "w.csv"), saved(tmp_path, losses, "l.csv"), key=key)


@pytest.mark.parametrize("name", ["absent.csv", "absent.parquet", "runs.xlsx", "nowhere://runs.csv"])
def test_a_file_that_is_no_table_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(MixingError):
        read_observations(name if "://" in name else str(tmp_path / name))


def test_broken_files_are_told(tmp_path: Path) -> None:
    for name, data in (("a.parquet", b"PAR"), ("a.csv", b"run,\xff\xfe\n"), ("a.csv.gz", b"run,a\n")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(MixingError, match=name):
            read_observations(tmp_path / name)


def test_the_same_run_twice_counts_once_with_a_note(tmp_path: Path) -> None:
    read = read_observations(saved(tmp_path, WIDE + "r1,0.25,0.75,2.0\n"))
    assert len(read) == 2
    assert read.notes == ("1 run is told more than once: it counts once",)


def test_runs_that_differ_in_seed_or_tokens_are_rows_of_their_own(tmp_path: Path) -> None:
    text = "run,seed,tokens,weight_a,loss\nr,0,100M,1,3\nr,1,100M,1,3.1\nr,0,200M,1,2.9\n"
    read = read_observations(saved(tmp_path, text))
    assert read.points.tokens.tolist() == [1e8, 1e8, 2e8]
    assert read.seeds.tolist() == [0, 1, 0]
    assert not read.notes


def test_failed_runs_and_infinite_losses_are_left_out_and_counted(tmp_path: Path) -> None:
    text = (
        "run,status,error,weight_a,weight_b,metric,value\n"
        "r1,done,,0.5,0.5,x,1\nr1,done,,0.5,0.5,y,inf\nr2,failed,no memory,0.4,0.6,,\nr3,done,,0.1,0.9,x,2\n"
    )
    read = read_observations(saved(tmp_path, text))
    assert read.runs == ("r1", "r3")
    np.testing.assert_array_equal(read.values, [[1, np.nan], [2, np.nan]])
    assert [note.split(": ", 1)[1] for note in read.notes] == [
        "1 failed run left out",
        "1 value is infinite and counts as not measured",
    ]


def test_a_mixture_that_a_spent_domain_changed_counts_as_it_was_trained(tmp_path: Path) -> None:
    text = "run,weight_a,weight_b,tokens_a,tokens_b,metric,value\nr1,0.5,0.5,501,499,x,1\nr2,0.9,0.1,600,400,x,2\n"
    read = read_observations(saved(tmp_path, text))
    assert read.weights.tolist() == [[0.5, 0.5], [0.6, 0.4]]
    assert "1 run trained on other shares" in read.notes[0]


def test_later_evaluations_join_the_runs_they_are_of(tmp_path: Path) -> None:
    later = saved(tmp_path, "run,metric,value\nr2,task,0.5\n", "later.csv")
    read = read_observations(saved(tmp_path, WIDE), later)
    assert read.metrics == ("loss", "task")
    np.testing.assert_array_equal(read.values, [[2, np.nan], [3, 0.5]])


def test_runs_without_losses_are_counted(tmp_path: Path) -> None:
    read = read_observations(saved(tmp_path, WEIGHTS, "w.csv"), saved(tmp_path, "index,x\n2,3\n", "l.csv"))
    assert read.runs == ("w-2",)
    assert read.notes[0].endswith("tells nothing of 1 run: left out")


def test_only_some_rows_and_metrics(tmp_path: Path) -> None:
    weights, losses = saved(tmp_path, WEIGHTS, "w.csv"), saved(tmp_path, LOSSES, "l.csv")
    assert read_observations(weights, losses, only={"index": 2}, metrics=("y",)).values.tolist() == [[30]]
    with pytest.raises(MixingError, match="no row where index is 9; it is 1, 2"):
        read_observations(weights, losses, only={"index": 9})
    with pytest.raises(MixingError, match="no column 'size'"):
        read_observations(weights, losses, only={"size": 9})


def test_domains_named_by_hand_and_scales_given_for_all(tmp_path: Path) -> None:
    read = read_observations(
        saved(tmp_path, "name,web,code,loss\nr,0.5,0.5,1\n"),
        domains=("web", "code"),
        parameters=1e6,
        tokens=1e8,
        unique_tokens={"code": 2e7},
    )
    assert (read.domains, read.metrics) == (("web", "code"), ("loss",))
    assert (read.points.parameters[0], read.points.tokens[0]) == (1e6, 1e8)
    assert read.points.epochs[0, 1] == pytest.approx(2.5)
    with pytest.raises(MixingError, match="no column of domain 'books'"):
        read_observations(saved(tmp_path, WIDE), domains=("books",))
    with pytest.raises(MixingError, match="layout: no 'pile'"):
        read_observations(saved(tmp_path, WIDE), layout="pile")


def test_arrow_and_compressed_tables(tmp_path: Path) -> None:
    arrow = read_observations(pa.table({"run": ["r"], "weight_a": [1.0], "loss": [2.0]}))
    assert (arrow.runs, arrow.values.tolist()) == (("r",), [[2.0]])
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(WIDE.encode()))
    assert len(read_observations(tmp_path / "r.csv.gz")) == 2


@st.composite
def whole_observations(draw: st.DrawFn) -> Observations:
    runs, domains, metrics = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    values = rng.normal(size=(runs, metrics))
    values[rng.random(values.shape) < 0.2] = np.nan
    unique = rng.choice([np.nan, np.inf, 0.0, 1e9], (runs, domains))
    return Observations.of(
        Points.of(
            [f"d{at}" for at in range(domains)],
            rng.dirichlet(np.ones(domains), runs),
            parameters=rng.choice([np.nan, 1e6, 7e7], runs),
            tokens=rng.choice([np.nan, 1e9], runs),
            unique_tokens=unique,
        ),
        [f"m/{at}" for at in range(metrics)],
        values,
        seeds=rng.integers(-1, 3, runs),
        flops=rng.choice([np.nan, 1e15], runs),
    )


@given(given_=whole_observations(), ending=st.sampled_from(["csv", "parquet"]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_written_is_read_back_the_same(tmp_path: Path, given_: Observations, ending: str) -> None:
    path = str(tmp_path / f"observations.{ending}")
    told = write(given_, path)
    assert told.equals(table(given_))
    assert told.equals(given_.table())
    assert told.num_rows == len(given_) * len(given_.metrics)
    read = read_observations(path)
    same(read, given_)


def same(one: Observations, other: Observations) -> None:
    assert (one.runs, one.domains, one.metrics) == (other.runs, other.domains, other.metrics)
    for left, right in itertools.chain(
        ((one.values, other.values), (one.seeds, other.seeds), (one.flops, other.flops)),
        ((getattr(one.points, name), getattr(other.points, name)) for name in ("parameters", "tokens")),
    ):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_allclose(one.weights, other.weights, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(one.points.unique_tokens, other.points.unique_tokens)


def test_nothing_is_left_behind_by_a_write_that_fails(tmp_path: Path) -> None:
    read = read_observations(saved(tmp_path, WIDE))
    with pytest.raises(MixingError, match="neither"):
        write(read, str(tmp_path / "o.json"))
    (tmp_path / "file").write_text("")
    with pytest.raises(MixingError, match="cannot be written"):
        write(read, str(tmp_path / "file" / "o.csv"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "runs.csv"]


def proxies_table(**more: Any) -> pa.Table:
    """As `train proxies` writes it: every column there, one run of two failed."""
    row = {"mixture": "m", "size": "s", "seed": 0, "error": None, "parameters": 1000, "tokens": 100, "flops": 1e9}
    done = {"run": "s-m-seed0", "status": "done", "weight_web": 0.75, "weight_code": 0.25} | {
        "unique_tokens_web": 1000, "unique_tokens_code": 10, "tokens_web": 75, "tokens_code": 25,
        "epochs_web": 0.075, "epochs_code": 2.5,
    }  # fmt: skip
    failed = {"run": "s-m-seed1", "status": "failed", "error": "died", "weight_web": 1.0, "weight_code": 0.0}
    metrics = [("bits_per_byte", 2.0), ("bits_per_byte/web", 1.5)]
    rows = [row | done | {"metric": metric, "value": value} | more for metric, value in metrics]
    columns = list(dict.fromkeys([*rows[0], *failed]))
    rows.append({name: (row | failed).get(name) for name in columns})
    return pa.Table.from_pylist(rows)


def test_the_table_of_proxies() -> None:
    read = read_observations(proxies_table())
    assert (read.domains, read.metrics) == (("web", "code"), ("bits_per_byte", "bits_per_byte/web"))
    assert read.values.tolist() == [[2.0, 1.5]]
    assert read.points.epochs.tolist() == [[0.075, 2.5]]
    assert (read.seeds.tolist(), read.flops.tolist()) == ([0], [1e9])
    assert read.notes == ("table: 1 failed run left out",)
