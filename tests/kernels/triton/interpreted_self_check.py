"""The check of the Triton kernels, on the kernels themselves and on altered ones.

`tests/ops/test_self_check.py` tests all else about the check.
"""

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from sn_openmmlab import SwitchNorm
from sn_openmmlab.kernels import agreement
from sn_openmmlab.kernels.triton import pass_kernels, statistics_kernels
from sn_openmmlab.ops.backends import choose_backend
from tests.backends import HAS_CPP


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make the input small, since the interpreter is slow."""
    monkeypatch.setattr(agreement, 'SHAPE', (2, 2, 2, 3))
    monkeypatch.setattr(agreement, 'MIXTURE', agreement.MIXTURE._replace(num_groups=1))


@triton.jit
def _altered_load(x, inside):
    """Load a tile as the kernels do, but add a hundredth."""
    return tl.load(x, inside, other=0.0).to(tl.float32) * 1.01


@pytest.mark.filterwarnings('error')
def test_kernels_that_agree_with_aten_are_used(on_fake_gpu):
    x = torch.randn(2, 4, 3, 3, dtype=torch.bfloat16, requires_grad=True)

    SwitchNorm(4)(x).sum().backward()

    assert choose_backend(x) == 'triton'
    assert x.grad.isfinite().all()


def test_an_altered_kernel_is_found(on_fake_gpu, monkeypatch):
    monkeypatch.setattr(pass_kernels, 'load_tile', _altered_load)

    with pytest.warns(UserWarning, match="the error of the moments of 'bn' is .*e-02 in contig"):
        assert choose_backend(torch.zeros(2, 4)) == ('cpp' if HAS_CPP else 'aten')


@triton.jit
def _stay(running, new, share, exists):
    """Leave running statistics as they are."""


def test_running_statistics_that_do_not_move_are_found(on_fake_gpu, monkeypatch):
    monkeypatch.setattr(statistics_kernels, '_move', _stay)

    with pytest.warns(UserWarning, match="the error of the moments of 'bn' is .* in contig"):
        assert choose_backend(torch.zeros(2, 4)) == ('cpp' if HAS_CPP else 'aten')


def test_a_launch_that_fails_is_found(on_fake_gpu, monkeypatch):
    def no_launch(kernel, grid):
        raise RuntimeError('Triton Error [CUDA]: device kernel image is invalid')

    monkeypatch.setattr(InterpretedFunction, '__getitem__', no_launch)
    x = torch.randn(2, 4, 3, 3, requires_grad=True)

    with pytest.warns(UserWarning, match='RuntimeError: Triton Error .CUDA.: device kernel'):
        SwitchNorm(4)(x).sum().backward()

    assert x.grad.isfinite().all()
