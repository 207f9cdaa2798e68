"""Which samples are kept: difficulty, length, degenerate traces, near-duplicates, contamination, balance."""
