"""A small, real language model: the decoder-only transformer of the Llama family, muP, and checkpoints others load."""
