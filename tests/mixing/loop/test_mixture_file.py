"""The mixture file: written and read as it was, refused where it is none, and what training makes of it."""

from __future__ import annotations

import dataclasses
import json

import pytest

from mixing.loop.comparing import compare, metrics_of
from mixing.loop.mixture_file import Forecast, Interval, MixtureFile, Phase, read_mixture, write_mixture
from mixing.observations.points import MixingError
from mixing.optimum import Objective
from train.pretrain import Pretrain

WHOLE = MixtureFile(
    weights={"code": 0.25, "web": 0.75},
    tokens=4000.0,
    unique_tokens={"code": 250.0, "web": 6000.0},
    max_epochs={"code": 4.0, "web": 4.0},
    level=0.9,
    objective=Interval(value=3.0, low=2.9, high=3.1),
    predicted={"loss/code": Interval(value=2.0, low=1.9, high=2.1), "loss/web": Interval(value=4, low=3.5, high=4.5)},
    minimised=Objective(weights={"loss/code": 0.5, "loss/web": 0.5}),
    natural=Forecast(weights={"code": 0.04, "web": 0.96}, objective=Interval(value=3.2, low=3.1, high=3.3)),
    runs=12,
    provenance={"observations": "abc"},
)


def test_a_mixture_is_read_as_it_was_written_with_tokens_and_epochs_of_each_domain(tmp_path):
    url = str(tmp_path / "mixture.json")
    write_mixture(WHOLE, url)
    assert read_mixture(url) == WHOLE
    told = json.loads((tmp_path / "mixture.json").read_text())
    assert told["epochs"] == {"code": 4.0, "web": 0.5}
    assert told["tokens_by_domain"] == {"code": 1000.0, "web": 3000.0}


def test_a_file_of_weights_alone_is_a_mixture(tmp_path):
    (tmp_path / "m.json").write_text('{"weights": {"a": 0.4, "b": 0.6}}')
    found = read_mixture(str(tmp_path / "m.json"))
    assert found.weights == {"a": 0.4, "b": 0.6}
    assert found.epochs is None
    assert found.train_settings() == {"weights": {"a": 0.4, "b": 0.6}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, "no such file; name the mixture.json that the mix step wrote"),
        ("{", "is no JSON; a mixture file has "),
        ("[]", 'holds no weights; a mixture file has {"weights": {domain: share}}'),
        ('{"weights": {}}', "weights: none; give each domain one"),
        ('{"weights": {"a": 0.5, "b": 0.49}}', "weights: sum to 0.990000; the weights of a mixture sum to 1"),
        ('{"weights": {"a": -0.5, "b": 1.5}}', "weights: a is -0.5; a weight is a number from 0 to 1"),
        ('{"weights": {"a": NaN, "b": 1}}', "weights: a is nan; a weight is a number from 0 to 1"),
        ('{"weights": {"a": true}}', "weights: a is True; a weight is a number from 0 to 1"),
        ('{"weights": {"a": 1}, "format": "x"}', "format 'x', where 'gristmill-mixture-1' can be read"),
        ('{"weights": {"a": 1}, "phases": [{"share": 1, "weights": {"a": 0.9}}]}', "phase 1: sum to 0.900000; the"),
        ('{"weights": {"a": 1}, "phases": [7]}', "phase 1 has no weights; give each {share, weights}"),
        ('{"weights": {"a": 1}, "objective": {"value": 1}}', "not a whole mixture file; run the mix step again"),
    ],
)
def test_what_is_no_mixture_is_refused_in_a_line(tmp_path, text, line):
    path = tmp_path / "m.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(MixingError) as caught:
        read_mixture(str(path))
    assert str(caught.value).startswith(f"{path}: {line}")
    assert "\n" not in str(caught.value)


def test_weights_that_are_no_mixture_are_not_written(tmp_path):
    with pytest.raises(MixingError, match=r"sum to 0\.9"):
        write_mixture(MixtureFile(weights={"a": 0.9}), str(tmp_path / "m.json"))
    assert list(tmp_path.iterdir()) == []


def test_training_takes_weights_and_caps_that_leave_room_for_the_last_step():
    told = WHOLE.train_settings(Pretrain(steps=10))
    assert told == {"weights": WHOLE.weights, "max_epochs": {"code": pytest.approx(4.04), "web": 4.0}}
    dataclasses.replace(Pretrain(steps=10), **told)
    assert "max_epochs" not in WHOLE.train_settings(Pretrain(steps=10, max_epochs=2.0))


def test_phases_become_changes_of_weights_at_their_steps_beside_those_of_the_run():
    phases = (Phase(share=0.8, weights={"a": 0.9, "b": 0.1}), Phase(share=0.2, weights={"a": 0.2, "b": 0.8}))
    mixture = MixtureFile(weights={"a": 0.76, "b": 0.24}, phases=phases)
    train = Pretrain(
        steps=100, changes=({"at_step": 50, "learning_rate": 0.001}, {"at_step": 80, "batch_sequences": 8})
    )
    made = dataclasses.replace(train, **mixture.train_settings(train))
    assert made.weights == pytest.approx(phases[0].weights)
    assert [one.at_step for one in made.changes] == [50, 80]
    assert made.changes[0].weights is None
    assert made.changes[1].weights == pytest.approx(phases[1].weights)
    assert made.changes[1].batch_sequences == 8


@pytest.mark.parametrize(("steps", "refused"), [(3, False), (2, True)])
def test_a_phase_shorter_than_a_step_is_refused(steps, refused):
    mixture = MixtureFile(
        weights={"a": 1.0}, phases=(Phase(share=0.8, weights={"a": 1.0}), Phase(share=0.2, weights={"a": 1.0}))
    )
    if not refused:
        assert mixture.train_settings(Pretrain(steps=steps))["changes"][0].at_step == 2
        return
    with pytest.raises(MixingError, match="phases: phase 2 of a run of 2 steps is shorter than one; train longer"):
        mixture.train_settings(Pretrain(steps=steps))


def test_phases_without_the_run_are_refused():
    mixture = MixtureFile(weights={"a": 1.0}, phases=(Phase(share=0.5, weights={"a": 1.0}),) * 2)
    with pytest.raises(MixingError, match=r"give train\.steps"):
        mixture.train_settings()


def test_each_measured_run_is_told_against_its_interval():
    runs = [{"loss/code": 1.95, "loss/web": 4.2, "other": 1.0}, {"loss/code": 2.2, "loss/web": float("nan")}]
    found = compare(WHOLE, runs)
    assert [(row.metric, row.inside) for row in found.rows] == [
        ("objective", (True,)),
        ("loss/code", (True, False)),
        ("loss/web", (True,)),
    ]
    assert found.inside == pytest.approx(3 / 4)
    assert found.level == 0.9
    assert json.loads(json.dumps(found.told()))["rows"][1]["mean"] == pytest.approx(2.075)
    assert found.lines()[1] == "loss/code: predicted 2.0000 [1.9000, 2.1000], measured 2.0750 (1 of 2 inside)"


def test_runs_on_the_natural_mixture_are_told_against_its_own_interval():
    found = compare(WHOLE, [{"loss/code": 2.5, "loss/web": 3.8}, {"loss/code": 3.0, "loss/web": 3.8}], natural=True)
    (row,) = found.rows
    assert (row.metric, row.measured, row.inside) == ("objective", (3.15, 3.4), (True, False))
    with pytest.raises(MixingError, match="tells of no natural mixture"):
        compare(dataclasses.replace(WHOLE, natural=None), {"loss/code": 1.0}, natural=True)


def test_nothing_in_common_is_told():
    with pytest.raises(MixingError, match="compare: none of objective, loss/code, loss/web was measured"):
        compare(WHOLE, {"accuracy": 1.0})


def test_metrics_of_a_trained_run_are_named_as_the_proxies_name_them():
    told = {"bits_per_byte": 1.0, "nats_per_token": None, "by_domain": {"a": {"bits_per_byte": 2, "nats_per_token": 3}}}
    assert metrics_of(told) == {"bits_per_byte": 1.0, "bits_per_byte/a": 2.0, "loss/a": 3.0}
