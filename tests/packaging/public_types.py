"""A program that uses the public names, for ``make lint``: mypy checks what types they have.

A wrong call is marked with the error that mypy must report; an unneeded mark is an error too.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

import sn_openmmlab

if TYPE_CHECKING:
    from typing_extensions import assert_type

    layer = sn_openmmlab.SwitchNorm(8, scopes=('in', 'ln'), momentum=None)
    assert_type(layer.forward(torch.randn(2, 8, 4, 4)), Tensor)
    assert_type(layer.importance_ratios(), tuple[Tensor, Tensor])
    sn_openmmlab.SwitchNorm('8')  # type: ignore[arg-type]
    sn_openmmlab.SwitchNorm(8, group=2)  # type: ignore[call-arg]

    sync = sn_openmmlab.SyncSwitchNorm(8)
    assert_type(sync.forward(torch.randn(2, 8)), Tensor)

    network = nn.Sequential(nn.Conv2d(3, 8, 1), nn.BatchNorm2d(8))
    sn_openmmlab.convert_batch_norm(network, batch_ratio=0.9)
    sn_openmmlab.convert_sync_switch_norm(network)
    sn_openmmlab.revert_sync_switch_norm(network)
    sn_openmmlab.update_bn([torch.randn(2, 3, 4, 4)], network)
    names = sn_openmmlab.batch_average(network, [torch.randn(2, 3, 4, 4)], lambda m, x: m(x))
    assert_type(names, list[str])
    sn_openmmlab.update_bn(network)  # type: ignore[call-arg]
    sn_openmmlab.inflate_module(network, frames=3)
    sn_openmmlab.inflate_weights(network.state_dict(), network)
    sn_openmmlab.inflate_module(network, 3, 1)  # type: ignore[call-arg]
    sn_openmmlab.split_ratios(network, 2)
    sn_openmmlab.split_ratio_weights(network.state_dict(), network)
