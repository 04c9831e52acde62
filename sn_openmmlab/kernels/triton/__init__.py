"""The fused op made of Triton kernels, for CUDA.

- `stages.py` provides the contract, by `passes.py` and `tables.py`, which start the kernels by
  `launch.py`.
- `pass_kernels.py`, `mix_kernel.py` and `gradient_kernels.py` are the kernels, `merge.py` merges
  what several programs found.
- `tiles.py` cuts a big tensor into tiles; `addressing.py`, `ratios.py` and `pooling.py` are what
  the kernels are made of.
- `tuning.py` holds the sizes that were tuned.
"""

# The scopes that `tables.py` fuses; the op leaves others to the next backend.
FUSED_SCOPES = ('in', 'gn', 'ln', 'bn')
