"""The same bits from run to run, in one process and in two."""

import pytest
import torch

from sn_openmmlab.ops.switch_norm import switch_norm
from tests.backends import CPP, FUSED_ON_CPU

SCRIPT = """
import hashlib
import torch
from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm

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
            with use_backend('{backend}'):
                y, observed = switch_norm(x, *others, **options)
            grads = torch.autograd.grad(y, [x, *others], dy)
            for tensor in (y, *observed[:2], *grads):
                digest.update(tensor.detach().double().contiguous().numpy().tobytes())
    digests.append(digest.hexdigest())
print(*digests)
"""


@pytest.mark.parametrize('backend', FUSED_ON_CPU)
def test_two_runs_in_each_of_two_processes_give_the_same_bits(backend, run_together):
    script = SCRIPT.format(threads=2, backend=backend)

    outputs = [done.stdout.split() for done in run_together([['-c', script]] * 2)]

    assert len(outputs[0]) == 2 and len({digest for output in outputs for digest in output}) == 1


@pytest.mark.parametrize('backend', [CPP])
def test_compiled_it_gives_the_same_bits_on_any_number_of_threads(backend, run_together):
    scripts = [SCRIPT.format(threads=threads, backend=backend) for threads in (1, 2, 3)]

    outputs = [done.stdout for done in run_together([['-c', script] for script in scripts])]

    assert len(set(outputs)) == 1


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
