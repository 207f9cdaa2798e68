"""Answers against gold, each kind by its own verifier; an error is never a wrong answer."""
