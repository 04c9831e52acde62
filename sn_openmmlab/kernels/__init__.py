"""The arithmetic of Switchable Normalization, one package per backend.

`plain` is differentiated by autograd and defines what is right. The others run the fused op in four
stages, which `contract.py` describes: `aten` by torch's own calls, on any device; `cpp` by compiled
loops, on the CPU; `triton` by kernels for CUDA. A new backend is one more package with a module
`stages.py`, and a line in `ops/backends.py`.

Nothing here knows about processes, autocast, autograd functions or layers.
"""
