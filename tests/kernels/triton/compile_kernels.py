"""Compile every Triton kernel for a GPU, down to machine code, without one; print what came out.

The interpreter accepts code that the compiler rejects. The op is called on CPU tensors, and a stub
takes the place of the GPU, whose compute capability is the first argument; the second is `all` or
`default`, for the usual case alone. Prints one line of JSON per kernel, and one for the launches
and calls of training steps.
"""

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import torch
from torch.profiler import ProfilerActivity, profile
from triton.runtime.jit import JITFunction

from sn_openmmlab.kernels.triton.plans import forward_plan
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.switch_norm import switch_norm
from studies.benchmarks.stubbed_gpu import launched, stub_gpu

DTYPES = {'float32': torch.float32, 'float16': torch.float16, 'bfloat16': torch.bfloat16}
FORMATS = {'contiguous': torch.contiguous_format, 'channels_last': torch.channels_last}
SHAPE = (2, 64, 200, 304)
DEFAULT = ('in', 'ln', 'bn')
run_kernel = JITFunction.run
compiled = {}
ordinary = []


def run_and_keep(kernel, *args, **kwargs):
    """Take the place of `JITFunction.run`."""
    result = run_kernel(kernel, *args, **kwargs)
    ordinary.append(kernel.__name__)
    compiled.setdefault(result.hash, (kernel.__name__, case, result))
    return result


def call(x, scopes, affine, given, correction=0, parameters=torch.float32, ratio_groups=()):
    """Run forward and backward."""

    def vector(*size):
        return torch.ones(size, dtype=parameters, requires_grad=True)

    channels = x.shape[1]
    weights = [vector(channels) if affine else None for _ in range(2)]
    controls = [vector(*ratio_groups, len(scopes)) for _ in range(2)]
    moments = [torch.ones(channels) for _ in range(2)] if given else None
    options = {'scopes': scopes, 'num_groups': 4, 'correction': correction, 'eps': 1e-5}
    y, _ = switch_norm(x.requires_grad_(), *weights, *controls, **options, batch_moments=moments)
    y.backward(torch.empty_like(y))


def outer_calls(profiled):
    """Return the calls of ATen that are not made by another one."""
    calls = [event for event in profiled.events() if event.name.startswith('aten::')]
    return [event.name for event in calls if event.cpu_parent not in calls]


def train(layer, x):
    """Take the forward and the backward pass of a step; return what each launched and called."""
    x, dy = x.requires_grad_(), torch.empty_like(x)
    found = {}
    for name in ('forward', 'backward'):
        launched.clear()
        ordinary.clear()
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            if name == 'forward':
                y = layer(x)
            else:
                torch.autograd.grad(y, [x, *layer.parameters()], dy)
        counts = {'ordinary': len(ordinary), 'calls': outer_calls(profiled)}
        found[name] = {'launched': list(launched), **counts}
    return found


def call_with_everything():
    """Call the op with every kind of input and layer."""
    global case
    for name, layout in product(DTYPES, FORMATS):
        case = f'{name} {layout}'
        x = torch.empty(SHAPE, dtype=DTYPES[name], memory_format=FORMATS[layout])
        call(x, DEFAULT, True, False)
    # Rows that start at multiples of 4 and anywhere, sizes of 1, and a stride between positions.
    for name, x in {
        'multiples': torch.empty(64, 256, 14, 14),
        'anywhere': torch.empty(64, 256, 7, 7, dtype=torch.float16),
        'one position': torch.empty(33, 20),
        'one number': torch.empty(1, 1),
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


stub_gpu(int(sys.argv[1]))
JITFunction.run = run_and_keep
with use_backend('triton'):
    if sys.argv[2] == 'all':
        call_with_everything()
    case = 'running statistics'
    for momentum in (None, 0.1):
        layer = SwitchNorm(64, momentum=momentum)
        # The second step is by what the first one compiled.
        steps = [train(layer, torch.empty(SHAPE)) for _ in '12']
    # Threads that need the same plan at once, before there is one.
    forward_plan.cache_clear()
    launched.clear()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(layer, [torch.empty(SHAPE)] * 12))
print(json.dumps({'steps': steps, 'launched_by_threads': len(launched)}))
for kernel, case, result in compiled.values():
    code = result.asm['ptx']
    loads = set(re.findall(r'ld\.global\.(?:v\d\.)?b\d+', code))
    size = len(result.asm['cubin'])
    print(json.dumps({'kernel': kernel, 'case': case, 'loads': sorted(loads), 'size': size}))
