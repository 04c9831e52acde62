"""What the tests of the Triton kernels share. Nothing here imports triton.

At its import Triton decides whether to compile kernels or to run them in its interpreter, on the
CPU. Other tests of this process may need the first. So `test_triton_kernels.py` runs the files
named `interpreted_*.py` in a process of its own.
"""

import pytest
import torch


@pytest.fixture(scope='session')
def rounding():
    """Return a function: the error of rounding to the type of `found` by the interpreter.

    The interpreter truncates to bfloat16, where the GPU rounds to the nearest.
    """

    def error(found, expected):
        own = torch.finfo(found.dtype)
        half = 1 if found.dtype == torch.bfloat16 else 0.5
        return half * own.eps * expected.abs() + own.smallest_normal * own.eps

    return error
