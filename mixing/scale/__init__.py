"""From small runs to the target: recalibration, choice of law by the largest scale, loss to downstream metric."""
