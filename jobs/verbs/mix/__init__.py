"""The verbs of `gristmill mix`."""
