"""Let mmengine's AmpOptimWrapper train on a CPU: to be named in a config's ``custom_imports``.

The operators of mmcv have no bfloat16 on a CPU, so here they compute in float32.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import mmcv.ops  # noqa: F401
import torch
from mmengine.optim.optimizer import amp_optimizer_wrapper
from torch import Tensor

amp_optimizer_wrapper.is_cuda_available = lambda: True
amp_optimizer_wrapper.GradScaler = partial(torch.amp.GradScaler, 'cpu')


def in_float32(operator: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return an operator of two tensors and more that computes in float32."""

    def call(x: Tensor, y: Tensor, *rest: Any, **named: Any) -> Tensor:
        result = operator(x.float(), y.float(), *rest, **named)
        return result.to(x.dtype) if result.is_floating_point() else result

    return call


# The functions of the same names hide both modules.
_nms, _roi_align = (sys.modules[f'mmcv.ops.{name}'] for name in ('nms', 'roi_align'))
_nms.NMSop.apply = in_float32(_nms.NMSop.apply)
_roi_align.roi_align = in_float32(_roi_align.roi_align)
