"""The verbs of `gristmill synth`."""
