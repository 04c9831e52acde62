"""The fused op compiled for the CPU: loops over memory in C++, `csrc/`.

- `library.py` loads what was compiled when the package was installed, if it fits this torch.
- `stages.py` provides the contract. The op in one call, with its backward pass, is an operator of
  its own, which `ops/whole.py` calls.
- `fakes.py` tells torch the shapes of the results.
"""
