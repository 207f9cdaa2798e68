"""One module a verb of `gristmill train`: its `run` prints the answer and returns the exit code."""
