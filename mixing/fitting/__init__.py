"""The fit people use: laws compared by cross-validation, averaged, with intervals that cover."""
