"""The normalization layers: parameters, running statistics and ``forward``."""
