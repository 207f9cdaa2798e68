"""A model's settings: defaults worked out, what does not fit refused, and other widths of the same model."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from pydantic import ValidationError

from train.model.settings import ModelSettings, RopeScaling


def small(**changes: object) -> ModelSettings:
    return ModelSettings(**({"vocab_size": 100, "layers": 2, "width": 48, "heads": 4} | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(("width", "inner"), [(48, 128), (72, 192), (312, 832), (4096, 10944)])
def test_feed_forward_width_is_eight_thirds_rounded_up_to_64(width, inner):
    assert small(width=width).shape.feed_forward_width == inner


def test_defaults_are_worked_out_in_the_shape():
    assert small().shape == (100, 2, 48, 4, 4, 12, 128)
    assert small(key_value_heads=2, head_width=16, feed_forward_width=7).shape == (100, 2, 48, 4, 2, 16, 7)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"heads": 5}, "heads: 5 do not divide width 48"),
        ({"key_value_heads": 3}, "key_value_heads: 3 do not divide heads 4"),
        ({"heads": 16}, "head_width: 3 is odd"),
        ({"mup_base_head_width": 12}, "needs mup_base_width"),
        ({"zero_readout": True}, "zero_readout"),
        ({"depth": 3}, "depth"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes, told):
    with pytest.raises(ValidationError, match=told):
        small(**changes)


def test_llama3_scaling_wants_its_factors_in_order():
    assert RopeScaling().high_frequency_factor == 4
    with pytest.raises(ValidationError, match="must be larger"):
        RopeScaling(low_frequency_factor=4.0)


def test_wider_means_more_heads_of_one_width():
    wider = small(key_value_heads=2, mup_base_width=48).at_width(144)
    assert wider.shape == (100, 2, 144, 12, 6, 12, 384)
    assert (wider.width_ratio, wider.output_multiplier) == (3, 1 / 3)
    assert wider.attention_scale == pytest.approx(1 / math.sqrt(12))


def test_heads_that_grow_wider_score_as_one_over_their_width():
    base = small(mup_base_width=48, mup_base_head_width=12, feed_forward_width=96)
    wider = base.at_width(96)
    assert wider.shape == (100, 2, 96, 4, 4, 24, 192)
    assert base.attention_scale == pytest.approx(1 / math.sqrt(12))
    assert wider.attention_scale == base.attention_scale / 2


def test_a_width_that_splits_a_head_is_refused():
    with pytest.raises(ValueError, match="heads would be 5"):
        small(key_value_heads=2, layers=1).at_width(66)
    assert small().at_width(48) == ModelSettings(
        vocab_size=100, layers=2, width=48, heads=4, key_value_heads=4, head_width=12
    )


def test_settings_and_counts_need_no_torch():
    code = "import sys, train.model.settings, train.model.counts; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
