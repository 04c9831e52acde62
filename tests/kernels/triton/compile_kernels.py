"""Compile every Triton kernel for an H100, down to machine code, without one; print what came out.

The interpreter accepts code that the compiler rejects. So the real driver is replaced by one that
only names the GPU. The op is called on CPU tensors, and each launch compiles the kernel for its
arguments without running it. Prints one line of JSON per kernel.
"""

import json
import re
from itertools import product
from types import SimpleNamespace

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.kernels.triton import stages
from sn_openmmlab.ops.fused import FusedSwitchNorm, Settings

DTYPES = {'float32': torch.float32, 'float16': torch.float16, 'bfloat16': torch.bfloat16}
FORMATS = {'contiguous': torch.contiguous_format, 'channels_last': torch.channels_last}
SHAPE = (2, 64, 200, 304)
DEFAULT = ('in', 'ln', 'bn')
H100 = GPUTarget('cuda', 90, 32)
run_kernel = JITFunction.run
compiled = {}


def compile_only(kernel, *args, grid, warmup, **kwargs):
    """Take the place of `JITFunction.run`."""
    result = run_kernel(kernel, *args, grid=grid, warmup=True, **kwargs)
    compiled.setdefault(result.hash, (kernel.__name__, case, result))
    return result


def call(x, scopes, affine, given, correction=0, parameters=torch.float32, ratio_groups=()):
    """Run forward and backward."""

    def vector(*size):
        return torch.ones(size, dtype=parameters, requires_grad=True)

    channels = x.shape[1]
    weights = [vector(channels) if affine else None for _ in range(2)]
    controls = [vector(*ratio_groups, len(scopes)) for _ in range(2)]
    moments = [torch.ones(channels) if given else None for _ in range(2)]
    settings = Settings(stages, Mixture(scopes, 4, correction, 1e-5), None)
    y, *_ = FusedSwitchNorm.apply(x.requires_grad_(), *weights, *controls, *moments, settings)
    y.backward(torch.empty_like(y))


driver.set_active(
    SimpleNamespace(
        get_current_target=lambda: H100,
        get_current_device=lambda: 0,
        get_current_stream=lambda device: 0,
    )
)
JITFunction.run = compile_only
for name, layout in product(DTYPES, FORMATS):
    case = f'{name} {layout}'
    x = torch.empty(SHAPE, dtype=DTYPES[name], memory_format=FORMATS[layout])
    call(x, DEFAULT, True, False)
# Rows that start at multiples of 4 and anywhere, one position, and a stride between positions.
for name, x in {
    'multiples': torch.empty(64, 256, 14, 14),
    'anywhere': torch.empty(64, 256, 7, 7, dtype=torch.float16),
    'one position': torch.empty(33, 20),
    'strided': torch.empty(3, 4100, 5, 1)[:, :, ::2],
}.items():
    case = name
    call(x, DEFAULT, True, False)
for scopes, affine, given in [
    (('gn', 'in', 'bn', 'ln'), True, False),
    (('gn', 'in', 'bn', 'ln'), True, True),
    (('in',), False, False),
    (('bn',), False, True),
    (('ln', 'gn'), False, False),
]:
    case = f'{scopes} affine={affine} given={given}'
    parameters = torch.bfloat16 if affine else torch.float32
    call(torch.empty(3, 4100, 5), scopes, affine, given, 1, parameters)
case = 'ratio groups'
call(torch.empty(3, 4100, 5), ('gn', 'in', 'bn', 'ln'), True, False, ratio_groups=(5,))
for kernel, case, result in compiled.values():
    code = result.asm['ptx']
    loads = set(re.findall(r'ld\.global\.(?:v\d\.)?b\d+', code))
    size = len(result.asm['cubin'])
    print(json.dumps({'kernel': kernel, 'case': case, 'loads': sorted(loads), 'size': size}))
