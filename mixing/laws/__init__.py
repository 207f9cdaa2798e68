"""Mixing laws: equations from mixture (and scale) to loss, each named after its source, fitted to observations."""
