"""`gristmill mix` from outside: tables in, mixtures out, each mistake one line with its place and its mend."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.command_line import invoke
from mixing.observations import Observations, Points, read_observations, write

DOMAINS = ("books", "code", "web")
BEST = {"books": 0.2, "code": 0.3, "web": 0.5}


def loss(weights: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """[n, 3]: each domain's loss falls with its own weight, so that their mean is best at BEST."""
    need = np.array([BEST[name] for name in DOMAINS])
    return np.asarray(2 + need**1.5 / np.sqrt(weights + 1e-3))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """40 runs of three domains with little noise."""
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.ones(3), 40)
    values = loss(weights) + rng.normal(0, 0.002, (40, 3))
    metrics = [f"loss/{name}" for name in DOMAINS]
    path = str(tmp_path_factory.mktemp("mix") / "runs.parquet")
    write(Observations.of(Points.of(DOMAINS, weights), metrics, values), path)
    return path


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert invoke(["mix", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert invoke(["mix", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_fit_says_what_it_chose_and_why(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = asked(capsys, "fit", table)
    shares: dict[str, float] = {}
    for row in told["choice"]:
        shares[row["metric"]] = shares.get(row["metric"], 0.0) + row["share"]
    assert all(abs(share - 1) < 1e-9 for share in shares.values())
    assert "held-out" in told["why"]


def test_optimize_finds_the_optimum_and_writes_what_predict_and_training_take(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "mixture.json")
    told = asked(capsys, "optimize", table, "--output", path)
    best = loss(np.array([[BEST[name] for name in DOMAINS]])).mean()
    here = loss(np.array([[told["weights"][name] for name in DOMAINS]])).mean()
    assert here - best < 0.002 * best
    assert told["objective"]["low"] < told["objective"]["value"] < told["objective"]["high"]
    predicted = asked(capsys, "predict", table, "--at", path)
    assert [row["metric"] for row in predicted] == [f"loss/{name}" for name in DOMAINS]
    assert np.mean([row["value"] for row in predicted]) == pytest.approx(told["objective"]["value"])


def test_a_ceiling_holds_and_its_price_is_told(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = asked(capsys, "optimize", table, "--set", "constraints.ceilings.web=0.3")
    assert told["weights"]["web"] <= 0.3 + 1e-9
    assert [price["constraint"] for price in told["optimum"]["prices"]] == ["ceilings.web"]
    assert told["optimum"]["prices"][0]["price"] > 0


def test_two_files_are_joined_by_the_name_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(3), 20)
    (tmp_path / "weights.csv").write_text(
        "\n".join(["index,web,code,books", *(f"{at},{','.join(map(str, row))}" for at, row in enumerate(weights))])
    )
    order = rng.permutation(20)
    losses = 2 + 0.2 / np.sqrt(weights[:, 0] + 0.1)
    (tmp_path / "losses.csv").write_text("\n".join(["loss,index", *(f"{losses[at]},{at}" for at in order)]))
    told = asked(
        capsys, "predict", str(tmp_path / "weights.csv"), "--losses", str(tmp_path / "losses.csv"), "--at",
        "web=0.5,code=0.3,books=0.2",
    )  # fmt: skip
    assert told[0]["value"] == pytest.approx(2 + 0.2 / np.sqrt(0.6), abs=0.01)


def test_a_metric_without_a_value_is_left_out_and_one_loss_is_enough(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["run,weight_web,weight_code,loss/web,loss/code"]
    rows += [f"r{at},{at / 10},{1 - at / 10},{2 + (at / 10 - 0.6) ** 2}," for at in range(11)]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    told = asked(capsys, "optimize", str(tmp_path / "a.csv"))
    assert told["minimised"]["weights"] == {"loss/web": 1.0}
    assert told["runs"] == 11
    assert told["weights"]["web"] == pytest.approx(0.6, abs=0.05)


def test_limits_that_proposals_do_not_keep_are_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert invoke(["mix", "propose", "--domains", "a,b", "-n", "2", "--set", "constraints.min_entropy=0.6"]) == 0
    assert "min_entropy: of the optimum" in capfd.readouterr().err


def test_proposals_are_csv_that_proxies_take(table: str, tmp_path: Path, capfdbinary: Any) -> None:
    assert invoke(["mix", "propose", "--domains", ",".join(DOMAINS), "-n", "5"]) == 0
    assert invoke(["mix", "propose", table, "-n", "3"]) == 0
    first, _, later = capfdbinary.readouterr().out.decode().partition('"books"')[2].partition('"books"')
    rows = [*csv.DictReader(StringIO('"books"' + first)), *csv.DictReader(StringIO('"books"' + later))]
    assert len(rows) == 8
    assert all(abs(sum(float(row[name]) for name in DOMAINS) - 1) < 1e-9 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "{here}/none.csv"), "none.csv"),
        (("fit", "{here}"), "holds no observations.parquet; name a table"),
        (("predict", "{table}"), "--at: no mixture; give a mixture file, or domains"),
        (("predict", "{table}", "--at", "web=x"), "'web=x' is no DOMAIN=SHARE"),
        (("predict", "{table}", "--at", "web=0.7,wiki=0.3"), "unknown domain 'wiki'"),
        (("predict", "{table}", "--at", "web=0.7"), "sum"),
        (("propose",), "give tables of observations, or --domains"),
        (("optimize", "{table}", "--set", "constraints.ceilings.wev=0.3"), "no domain 'wev'; did you mean 'web'?"),
        (("optimize", "{table}", "--set", "constraints.floors.web=2"), "constraints.floors.web"),
        (("optimize", "{table}", "--set", "objective.weights.lost=1"), "nothing measured is 'lost'"),
        (("fit", "{table}", "--set", "law=powre"), "no 'powre'"),
        (("observe", "{here}", "{table}"), "holds no mixture"),
        (("optimize", "{table}", "--output", "{table}"), "is what is read; name another file"),
        (("optimize", "{table}", "--output", "{other}"), "holds something else than a mixture"),
        (("optimize", "{table}", "--output", "{here}"), "is a folder; name a file in it"),
        (("predict", "{table}", "--at", "{here}"), "is a folder; name the mixture.json"),
        (("predict", "{table}", "--at", ""), "--at: is empty"),
        (("predict", "{table}", "--at", "web=0.5,web=0.5"), "web stands twice"),
        (("propose", "{table}", "--domains", "a,b"), "the tables name the domains"),
        (("fit", "{table}", "{table}", "--losses", "{other}"), "--losses: goes with one table"),
        (("fit", "{table}", "--only", "run"), "--only run: is no COLUMN=VALUE"),
        (("fit", "{table}", "--only", "run=nobody"), "no row where run is 'nobody'"),
        (("fit", "{table}", "--set", "law=[shared_power, nope]"), "no 'nope'"),
        (("fit", "{table}", "{clash}"), "clash.csv, row 1: run 'run-00000' has"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...], said: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other, clash = tmp_path / "other.csv", tmp_path / "clash.csv"
    other.write_text("a,b\n1,2\n")
    clash.write_text("run,weight_web,loss/web\nrun-00000,1,2\n")
    given = [argument.format(here=tmp_path, table=table, other=other, clash=clash) for argument in arguments]
    assert said in refused(capsys, *given)


def test_trees_that_cannot_split_are_told(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_observations(table)
    few = str(tmp_path / "few.parquet")
    write(rows.rows(slice(0, 24)), few)
    assert invoke(["mix", "fit", few, "--set", "law=lightgbm"]) == 0
    assert "lightgbm, loss/books: 24 runs: trees cannot split below 40 runs" in capsys.readouterr().err


def test_a_pessimistic_objective_is_named_so(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["mix", "optimize", table, "--set", "objective.pessimism=1"]) == 0
    assert "objective + 1 half-widths" in capsys.readouterr().out


def test_intervals_without_end_are_null_in_json(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, file = str(tmp_path / "one.parquet"), str(tmp_path / "mixture.json")
    write(read_observations(table).rows(slice(0, 1)), one)

    def strict(text: str) -> Any:
        return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    assert invoke(["mix", "predict", one, "--at", "web=1", "--json"]) == 0
    assert strict(capsys.readouterr().out)[0]["high"] is None
    assert invoke(["mix", "optimize", one, "--output", file, "--json"]) == 0
    assert strict(capsys.readouterr().out)["objective"]["low"] is None
    strict(Path(file).read_text())
    assert invoke(["mix", "predict", table, "--at", file, "--json"]) == 0


def test_runs_that_tell_no_scale_are_left_out_where_others_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.ones(3), 24)
    sizes = np.where(np.arange(24) % 2, 1e6, 4e6)
    lengths = np.where(np.arange(24) % 3, 2e7, 8e7)
    values = loss(weights) + 400 / sizes[:, None] ** 0.5 + rng.normal(0, 0.002, (24, 3))
    unknown = np.arange(24) < 4
    points = Points.of(
        DOMAINS, weights, parameters=np.where(unknown, np.nan, sizes), tokens=np.where(unknown, np.nan, lengths)
    )
    path = str(tmp_path / "runs.parquet")
    write(Observations.of(points, [f"loss/{name}" for name in DOMAINS], values), path)
    assert invoke(["mix", "fit", path]) == 0
    told = capsys.readouterr()
    assert "4 of 24 runs tell no parameters or no tokens, where others do; left out" in told.err
    assert "joint" in told.out
    assert told.out.splitlines()[2].split()[0] != "constant"
