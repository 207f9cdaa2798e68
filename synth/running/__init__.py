"""The run: flows driven against teachers and verifiers, resumable, with an account of every row."""
