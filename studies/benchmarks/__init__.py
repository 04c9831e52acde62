"""Measurements of the layer beside its baselines, always in one process."""
