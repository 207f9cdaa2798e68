"""Fitting: an average of the laws that tell held-out runs best, with intervals that cover and a warning off support.

fit(observations, law="auto", metrics=, level=, seed=, workers=)   -> Fitted, itself a Law
Fitted.predict(mixtures)             -> Prediction: mean, low, high (tables), support, warnings
Fitted.choice, Fitted.why            what each law showed on held-out runs, and what was made of it
learning_curve(observations, sizes)  -> held-out error by number of runs
folds(observations)                  which rows are held out together, as `Law.held_out` takes them
"""

from __future__ import annotations

from mixing.fitting.average import fit
from mixing.fitting.fitted import Choice, Fitted, Prediction
from mixing.fitting.grouping import folds
from mixing.fitting.learning import LearningPoint, learning_curve

__all__ = ["Choice", "Fitted", "LearningPoint", "Prediction", "fit", "folds", "learning_curve"]
