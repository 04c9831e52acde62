"""The fused op made of ATen calls: any device with float64, any strides, every scope.

It is short rather than fast: it serves devices that have no kernels of their own, and machines
without a C++ compiler.
"""
