"""A GGUF file (llama.cpp's quantised format) becomes a checkpoint in the Hugging Face Llama layout."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import redirect_stderr

from train.model.checkpoint import DTYPES, Dtype, write_checkpoint
from train.model.hugging_face import CheckpointError, SpecialIds, settings_of


def convert_gguf(file: str, folder: str, *, dtype: Dtype = "float32") -> None:
    """Write the dequantised model of a local GGUF file, its tokenizer, chat template and special tokens, to a folder.

    transformers reads the file (it needs the packages gguf and accelerate); a 135M-parameter model takes some 15 s and
    2 GB. Raises CheckpointError for a file that is not there and for a model that load_hugging_face would refuse.
    """
    if not os.path.isfile(file):
        raise CheckpointError(f"{file}: not there; give a local .gguf file")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where, name = os.path.split(os.path.abspath(file))
    with redirect_stderr(io.StringIO()):  # progress bars
        tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=name)
        model = AutoModelForCausalLM.from_pretrained(where, gguf_file=name, dtype=DTYPES[dtype])
    told = model.config.to_dict()
    told.pop("quantization_config", None)
    settings = settings_of(told, file)
    weights = list(model.state_dict().items())
    if settings.tie_embeddings:
        weights = [(key, weight) for key, weight in weights if key != "lm_head.weight"]
    specials = SpecialIds(bos=tokenizer.bos_token_id, eos=tokenizer.eos_token_id, pad=tokenizer.pad_token_id)
    with tempfile.TemporaryDirectory(prefix="gristmill-") as scratch:
        tokenizer.save_pretrained(scratch)
        write_checkpoint(weights, settings, folder, scratch, dtype=dtype, specials=specials)
