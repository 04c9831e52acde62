"""Sparse SN in the layers of torch, for a toolbox without this package."""
