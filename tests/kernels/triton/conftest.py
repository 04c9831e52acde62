"""What the tests of the Triton kernels share. Nothing here imports triton: see the tests that do.

Triton decides when it is imported whether to compile kernels or to run them in its interpreter, on
the CPU, and this process may need it as it is. So ``test_triton_kernels.py`` runs the files named
``interpreted_*.py`` in a process of its own.
"""

import pytest
import torch


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(scope='session')
def layouts():
    """Functions by name that copy a tensor's values into another layout in memory."""
    return {
        'contiguous': torch.Tensor.contiguous,
        'channels_last': lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
        'samples_inside': lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
        'last_two_swapped': lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
        'channels_between': lambda x: x.movedim(1, -2).contiguous().movedim(-2, 1),
        'every_second': lambda x: torch.stack([x, x], -1).flatten(-2)[..., ::2],
        'every_second_channel': lambda x: torch.stack([x, x], 2).flatten(1, 2)[:, ::2],
        'part': lambda x: torch.nn.functional.pad(x, (1, 2, 3, 0))[..., 3:, 1 : x.shape[-1] + 1],
        'one_sample_repeated': lambda x: x[:1].expand(x.shape),
        'one_number_repeated': lambda x: x.flatten()[0].expand(x.shape),
    }


@pytest.fixture(scope='session')
def rounding():
    """A function: the error of rounding to the type of ``found`` by the interpreter.

    It cuts off what bfloat16 cannot hold, where the GPU rounds to the nearest.
    """

    def error(found, expected):
        own = torch.finfo(found.dtype)
        half = 1 if found.dtype == torch.bfloat16 else 0.5
        return half * own.eps * expected.abs() + own.smallest_normal * own.eps

    return error
