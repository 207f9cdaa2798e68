"""FLOPs a token, from the shape."""

from __future__ import annotations

import pytest

from train.compute.flops import ModelShape, TokenFlops, mean_square_length
from train.compute.numbers import BudgetError


def plain(layers, width):
    """Four times as wide inside, two matrices: 12 L d^2 weights, as the rules of thumb assume."""
    return ModelShape(
        vocab_size=50_257,
        layers=layers,
        width=width,
        heads=width // 64,
        feed_forward_width=4 * width,
        feed_forward_matrices=2,
    )


@pytest.mark.parametrize(
    ("layers", "width", "context", "share"),
    [(12, 768, 1024, 0.111), (24, 2048, 2048, 0.083), (32, 4096, 8192, 0.167), (32, 4096, 131_072, 2.67)],
)
def test_share_of_causal_attention_grows_with_context(layers, width, context, share):
    counted = TokenFlops.of(plain(layers, width), context)
    assert counted.attention_share == pytest.approx(share, rel=0.01)
    assert TokenFlops.of(plain(layers, width), context, causal=False).attention == 2 * counted.attention


def test_non_embedding_flops_are_those_of_deepseeks_formula():
    layers, width, context = 30, 4096, 4096
    counted = TokenFlops.of(plain(layers, width), context, causal=False)
    assert counted.layers + counted.attention == 72 * layers * width**2 + 12 * layers * width * context


def test_head_is_counted_whether_tied_or_not_and_the_embedding_never():
    shape = {"vocab_size": 32_768, "layers": 4, "width": 128, "heads": 2}
    tied, untied = (ModelShape(**shape, tie_embeddings=tie) for tie in (True, False))
    assert TokenFlops.of(tied, 256) == TokenFlops.of(untied, 256)
    assert TokenFlops.of(tied, 256).head == 6 * 128 * 32_768
    assert untied.parameters - tied.parameters == 128 * 32_768
    assert TokenFlops.of(tied, 256).head > TokenFlops.of(tied, 256).layers  # a proxy is mostly head


def test_inference_is_a_third_of_training():
    counted = TokenFlops.of(plain(12, 768), 1024)
    assert counted.inference * 3 == pytest.approx(counted.train)


def test_packed_documents_cost_what_their_squares_say():
    assert mean_square_length([2048]) == 2048
    assert mean_square_length([1024, 1024]) == 1024
    assert mean_square_length([1, 2047]) == pytest.approx(2046.0, abs=0.01)


def test_llama_3_8b_has_its_published_parameters():
    shape = ModelShape(
        vocab_size=128_256,
        layers=32,
        width=4096,
        heads=32,
        key_value_heads=8,
        feed_forward_width=14_336,
        tie_embeddings=False,
    )
    assert shape.parameters == 8_030_261_248


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"layers": 0}, "shape.layers: 0 is not a whole number above 0"),
        ({"heads": 3}, "shape.heads: 3 does not divide width 128"),
        ({"heads": 4, "key_value_heads": 3}, "shape.key_value_heads: 3 does not divide heads 4"),
        ({"feed_forward_matrices": 4}, "shape.feed_forward_matrices: 4 is neither 3 (SwiGLU) nor 2"),
    ],
)
def test_an_impossible_shape_is_refused(changed, told):
    with pytest.raises(BudgetError) as caught:
        ModelShape(**{"vocab_size": 256, "layers": 2, "width": 128, "heads": 2, **changed})
    assert str(caught.value).startswith(told)


def test_parameters_are_those_of_the_model_that_is_trained():
    from train.model.settings import ModelSettings
    from train.model.transformer import Transformer

    for given in (
        {"vocab_size": 300, "layers": 2, "width": 64, "heads": 4, "key_value_heads": 2},
        {"vocab_size": 300, "layers": 3, "width": 96, "heads": 3, "tie_embeddings": False, "feed_forward_width": 200},
    ):
        model = Transformer(ModelSettings(**given))
        assert sum(weight.numel() for weight in model.parameters()) == ModelShape(**given).parameters
