"""Training steps of one detector with different norm layers in the same places."""

from collections.abc import Callable
from typing import Any

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS, init_default_scope
from torch import nn
from torch.profiler import ProfilerActivity, profile

NORMS = {
    'BN': dict(type='BN', requires_grad=True),
    'GN': dict(type='GN', num_groups=32, requires_grad=True),
    'SN': dict(type='SN'),
}

# What computes a norm layer, in a trace of torch's profiler.
_KERNELS = (
    'aten::native_batch_norm',
    'aten::native_group_norm',
    'sn_openmmlab::switch_norm_forward',
    'aten::native_batch_norm_backward',
    'aten::native_group_norm_backward',
    'sn_openmmlab::switch_norm_backward',
)


def training_steps(
    config: Config, size: tuple[int, int], device: torch.device
) -> dict[str, Callable[[], None]]:
    """Return one function per norm that trains the config's detector by a step, SGD included.

    All get the same two random images with random boxes.

    Args:
        config: a config of MMDetection whose norm is SN.
        size: height and width of the images, in pixels.
        device: the device it runs on.
    """
    from mmdet.testing import demo_mm_inputs

    init_default_scope('mmdet')
    data = demo_mm_inputs(2, image_shapes=[(3, *size)] * 2, num_classes=80, num_items=[8, 8])
    return {name: _step(_build(config, norm).to(device), data) for name, norm in NORMS.items()}


def norm_share(step: Callable[[], None]) -> float:
    """Return the share of a step's time that its norm layers take, by torch's profiler."""
    step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    events = profiler.key_averages()
    whole = sum(event.self_cpu_time_total for event in events)
    return sum(event.cpu_time_total for event in events if event.key in _KERNELS) / whole


def with_norm(part: Any, norm: dict[str, Any]) -> Any:
    """Return a copy of a config with `norm` in the place of SN."""
    if isinstance(part, dict):
        if part.get('type') == 'SN':
            return dict(norm)
        return {key: with_norm(value, norm) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return type(part)(with_norm(item, norm) for item in part)
    return part


def _build(config: Config, norm: dict[str, Any]) -> nn.Module:
    model = ConfigDict(with_norm(config.model.to_dict(), norm))
    model['backbone']['init_cfg'] = None
    torch.manual_seed(0)
    return MODELS.build(model).train()


def _step(model: nn.Module, data: dict[str, Any]) -> Callable[[], None]:
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=1e-6)

    def run() -> None:
        # The sampling of proposals takes random numbers: the same for every norm.
        torch.manual_seed(0)
        losses = model(**model.data_preprocessor(data, True), mode='loss')
        loss, _ = model.parse_losses(losses)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run
