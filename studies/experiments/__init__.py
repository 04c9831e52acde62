"""Experiments: trainings over norms and seeds, and what they add up to."""
