"""Documents to token shards: tokenizers, exact fast encoding, and what lies on disk."""
