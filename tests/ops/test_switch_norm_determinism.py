"""The same bits from run to run, in one process and in two."""

import pytest
import torch

from sn_openmmlab.ops.switch_norm import switch_norm

SCRIPT = """
import hashlib
import torch
from sn_openmmlab.kernels.aten import walk
from sn_openmmlab.ops.switch_norm import switch_norm

walk.BLOCK_ELEMENTS = 1 << 16
options = dict(scopes=('in', 'gn', 'ln', 'bn'), num_groups=2, correction=0, eps=1e-5)
torch.set_num_threads({threads})
digests = []
for repeat in range(2):
    torch.manual_seed(0)
    digest = hashlib.sha256()
    for dtype in (torch.float32, torch.bfloat16):
        for memory_format in (torch.contiguous_format, torch.channels_last):
            x, dy = torch.randn(2, 3, 16, 90, 100).to(dtype)
            x = x.contiguous(memory_format=memory_format).requires_grad_()
            others = [torch.randn(n, requires_grad=True) for n in (16, 16, 4, 4)]
            y, observed = switch_norm(x, *others, **options)
            grads = torch.autograd.grad(y, [x, *others], dy)
            for tensor in (y, *observed[:2], *grads):
                digest.update(tensor.detach().double().contiguous().numpy().tobytes())
    digests.append(digest.hexdigest())
print(*digests)
"""


@pytest.mark.parametrize('threads', [1, 2])
def test_two_runs_in_each_of_two_processes_give_the_same_bits(threads, run_tool):
    script = SCRIPT.format(threads=threads)

    digests = [digest for _ in range(2) for digest in run_tool('-c', script).stdout.split()]

    assert len(digests) == 4 and len(set(digests)) == 1


def test_torchs_deterministic_mode_accepts_it_and_changes_nothing(make_inputs):
    inputs = make_inputs((2, 4, 20, 20), dtype=torch.float32)
    options = {'scopes': ('in', 'gn', 'ln', 'bn'), 'num_groups': 2, 'correction': 0, 'eps': 1e-5}
    dy = torch.randn(2, 4, 20, 20)

    def results():
        y, _ = switch_norm(*inputs, **options)
        return (y, *torch.autograd.grad(y, inputs, dy))

    expected = results()
    torch.use_deterministic_algorithms(True)
    try:
        found = results()
    finally:
        torch.use_deterministic_algorithms(False)

    assert all(map(torch.equal, found, expected))
