"""The fused op made of ATen calls: any device with float64, any strides, every scope."""
