"""The documented op `switch_norm`: its checks, the choice of a backend, and its derivatives.

`fused.py` is the autograd function that runs a fused backend. `expression.py` assembles the plain
backend, which autograd differentiates. Both pool the batch over processes by `batch.py`.
"""
