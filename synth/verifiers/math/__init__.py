"""Mathematical answers: math-verify and an independent numeric check, under stated policies."""
