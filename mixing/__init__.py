"""Domain ratios: observations of runs, a law fitted to them, an optimum with error bars, and what to try next."""
