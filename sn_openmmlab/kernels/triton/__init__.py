"""The fused op made of Triton kernels, for CUDA.

- `whole.py` is the op for a process alone; `stages.py` provides the contract, for groups. Both
  start the launches of `plans.py` by `launch.py`, and keep tables as `buffers.py` describes.
- `pass_kernels.py`, `statistics_kernels.py` and `gradient_kernels.py` are the kernels.
- `tiles.py` cuts a big tensor into tiles; `addressing.py`, `merging.py`, `ratios.py` and
  `pooling.py` are what the kernels are made of.
- `tuning.py` holds the sizes that were tuned.
"""

# The scopes that the kernels fuse; the op leaves others to the next backend.
FUSED_SCOPES = ('in', 'gn', 'ln', 'bn')
