"""The arithmetic of Switchable Normalization, one package per backend.

`plain` is differentiated by autograd and defines what is right. `aten` and `triton` run the fused
op: each has a `passes.py`, which visits the big tensors, and a `tables.py`, which computes on the
(N, C) tables between the passes. `contract.py` describes both; a new backend is one more package
with these two modules, and a line in `ops/backends.py`.

Nothing here knows about processes, autocast, autograd functions or layers.
"""
