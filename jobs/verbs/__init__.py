"""A verb a module: each has run(...), which prints to stdout and returns the exit code."""
