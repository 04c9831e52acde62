"""Measurements of the layer against its rivals: always side by side, in one process."""
