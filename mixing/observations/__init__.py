"""Observations of runs: mixtures, scales and measured metrics, from tables and published layouts."""
