"""Pure tensor functions: the arithmetic of Switchable Normalization, one file per step."""
