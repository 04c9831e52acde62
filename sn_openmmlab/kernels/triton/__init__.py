"""Kernels written in Triton, for CUDA."""
