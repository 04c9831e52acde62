"""Kernels made of ATen calls: any device, any strides."""
