"""Versioned prompt templates, a folder of files each."""
