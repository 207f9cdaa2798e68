"""Published runs, read in place: counts and sums that were taken from the files by other means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mixing.observations import MixingError, Observations, read_observations
from mixing.observations.published import count_of

REGMIX = [("train", "1m", 512, 35574.0355), ("test", "1m", 128, 8815.4709), ("test", "60m", 256, 12722.6484)]


def regmix(shared: Path, part: str, size: str) -> Observations:
    folder = shared / "mixing/regmix"
    return read_observations(folder / f"{part}_mixture_{size}.csv", folder / f"{part}_pile_loss_{size}.csv")


@pytest.mark.parametrize(("part", "size", "runs", "total"), REGMIX)
def test_regmix_runs(shared: Path, part: str, size: str, runs: int, total: float) -> None:
    read = regmix(shared, part, size)
    assert (len(read), len(read.domains), len(read.metrics)) == (runs, 17, 13)
    assert read.values.sum() == pytest.approx(total, abs=1e-3)
    assert set(read.metrics) < set(read.domains)
    assert {"pile_cc", "arxiv", "gutenberg_pg_19"} <= set(read.metrics)
    assert read.runs[0] == f"{part}_{size}-1"
    assert read.points.parameters[0] == (1e6 if size == "1m" else 6e7)
    np.testing.assert_allclose(read.weights.sum(axis=1), 1, atol=1e-14)


def test_regmix_values_are_those_of_the_run_they_stand_for(shared: Path) -> None:
    read = regmix(shared, "test", "1m")
    row = read.runs.index("test_1m-3")
    assert read.weights[row, read.domains.index("github")] == pytest.approx(0.477, rel=1e-3)
    assert read.values[row, read.metrics.index("dm_mathematics")] == 2.0013649463653564
    assert read.values[row, read.metrics.index("pile_cc")] == 5.765591144561768


def test_the_same_mixtures_at_two_sizes_are_pooled_as_different_runs(shared: Path) -> None:
    from mixing.observations import pool

    whole = pool(regmix(shared, "test", "1m"), regmix(shared, "test", "60m"), regmix(shared, "train", "1m"))
    assert len(whole) == 128 + 256 + 512
    assert len(set(whole.runs)) == len(whole)


@pytest.mark.parametrize(
    ("only", "rows", "runs", "domains"),
    [
        ({"experiment": "5Mix", "model_size": "70M", "step": 30000}, 26, 26, 5),
        ({"experiment": "5Mix", "step": 30000}, 78, 78, 5),
        ({"experiment": "RedPajama", "model_size": "70M", "step": 30000}, 42, 42, 7),
        ({"experiment": ("2Mix", "3Mix"), "step": 30000}, 19, 19, 3),
    ],
)
def test_mixing_laws_runs(shared: Path, only: dict[str, object], rows: int, runs: int, domains: int) -> None:
    read = read_observations(shared / "mixing/mixinglaws/runs.csv.gz", only=only)
    assert (len(read), len(set(read.runs)), len(read.domains)) == (rows, runs, domains)
    assert set(read.points.tokens) == {3e10}
    np.testing.assert_allclose(read.weights.sum(axis=1), 1, atol=1e-14)


def test_all_mixing_laws_runs_and_what_is_left_out_of_them(shared: Path) -> None:
    read = read_observations(shared / "mixing/mixinglaws/runs.csv.gz")
    assert (len(read), len(set(read.runs)), len(read.metrics)) == (3189, 180, 22)
    assert np.nansum(read.values) == pytest.approx(163211.7056, abs=1e-3)
    assert set(read.points.parameters) == {7e7, 1.6e8, 3.05e8}
    told = [note.split(": ", 1)[1] for note in read.notes]
    assert told[0] == "the domains of experiment ct are not told: left out"
    assert told[1] == "50 rows without a ratio left out"
    assert told[2].startswith("528 rows of ratios that miss 1")


def test_a_mixing_laws_ratio_is_read_in_the_experiments_order(shared: Path) -> None:
    read = read_observations(
        shared / "mixing/mixinglaws/runs.csv.gz", only={"run": "70M_8-0.5-0-0.0625-0.0625-0.375", "step": 30000}
    )
    weights = dict(zip(read.domains, read.weights[0], strict=True))
    assert weights == {"academic": 0.5, "prose": 0, "dialogue": 0.0625, "symbolic": 0.0625, "internet": 0.375}


def test_an_experiment_whose_domains_are_not_told_is_refused_alone(shared: Path) -> None:
    with pytest.raises(MixingError, match="whose domains are known"):
        read_observations(shared / "mixing/mixinglaws/runs.csv.gz", only={"experiment": "ct"})


def test_slimpajama_checkpoints_share_the_name_of_their_run(shared: Path) -> None:
    read = read_observations(shared / "mixing/slimpajama/runs.csv")
    assert (len(read), len(read.domains), len(read.metrics)) == (2188, 7, 8)
    assert np.nansum(read.values) == pytest.approx(42939.2749, abs=1e-3)
    assert np.isnan(read.values).sum(axis=0).tolist() == [0, 0, 0, 2, 0, 5, 6, 3]
    assert set(read.points.parameters) == {1.22e8, 3.1e8, 6.8e8, 9.37e8}
    # 60 mixtures, of which 654/11 and 440/11 were trained at each size, in 11 checkpoints or fewer
    counts = np.unique(np.asarray(read.runs), return_counts=True)[1]
    assert len(counts) == 200
    assert counts.max() == 11


def test_datablations_runs_and_their_epochs(shared: Path) -> None:
    read = read_observations(shared / "mixing/repetition/datablations.csv")
    assert (len(read), read.domains, read.metrics) == (141, ("c4", "c4-dedup"), ("val_loss",))
    assert read.values.sum() == pytest.approx(491.3699, abs=1e-3)
    one = read.rows([read.runs.index("2b88b4b")])
    assert one.points.epochs[0].tolist() == [2.0, 0.0]
    assert (read.seeds >= 0).sum() == 36
    seeds = read_observations(shared / "mixing/repetition/datablations.csv", only={"variant": ("", "seed1")})
    assert seeds.domains == ("c4",)


@pytest.mark.parametrize(
    ("text", "count"), [("70M", 7e7), ("train_mixture_1m", 1e6), ("1.5B", 1.5e9), ("m1", None), ("", None)]
)
def test_counts_as_people_write_them(text: str, count: float | None) -> None:
    assert count_of(text) == count


@pytest.mark.parametrize("ratio", ["0.5-0.5", "a-b-c-d-e", "0.5-0.5-0.5-0.5-0.5"])
def test_a_ratio_that_is_none_is_told_with_its_line(tmp_path: Path, ratio: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(
        f"experiment,model_size,run,run_id,ratio,step,valid_domain,loss\n5Mix,70M,r,r,{ratio},1000,Books,2.0\n"
    )
    with pytest.raises(MixingError, match="line 2: ratio is"):
        read_observations(path)


def test_a_layout_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("run,weight_a,loss\nr,1,2\n")
    with pytest.raises(MixingError, match="layout slimpajama has a column"):
        read_observations(path, layout="slimpajama")
