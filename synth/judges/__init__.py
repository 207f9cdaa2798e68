"""Teachers as judges: pairwise with order swap, rubrics, equivalence; what they did not score stays unscored."""
