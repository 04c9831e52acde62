"""Checking the weights that enter a model, before anything is trained or tested."""
