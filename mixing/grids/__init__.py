"""Domains crossed with quality, copies or phases: quality buckets, rehydration, curricula."""
