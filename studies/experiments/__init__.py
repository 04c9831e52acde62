"""Experiments: trainings over norms and seeds, and their results."""
