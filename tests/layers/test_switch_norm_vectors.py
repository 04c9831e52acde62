"""SN of layer and batch statistics on vectors, (N, C), where a config asks for SN1d."""

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip('mmcv')
from mmcv.cnn import build_norm_layer

import sn_openmmlab  # noqa: F401  registers SN1d


def build(channels: int) -> nn.Module:
    """Return the layer that a toolbox builds, with random λ, γ and β, in float64."""
    _, layer = build_norm_layer(dict(type='SN1d', scopes=('ln', 'bn')), channels)
    layer.double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def mixed(layer: nn.Module, x: Tensor, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mix the moments over the channels of each sample with those of the batch (Eq. 3 and 5)."""
    own = x.mean(1, keepdim=True), x.var(1, correction=0, keepdim=True)
    (w, other_w), (v, other_v) = (λ.softmax(0) for λ in (layer.mean_weight, layer.var_weight))
    mean = w * own[0] + other_w * batch[0]
    var = v * own[1] + other_v * batch[1]
    return layer.weight * (x - mean) / (var + layer.eps).sqrt() + layer.bias


def test_training_takes_the_batch_and_evaluation_the_running_statistics() -> None:
    layer, x = build(6), 2 * torch.randn(5, 6, dtype=torch.float64) + 1
    batch = x.mean(0), x.var(0, correction=0)
    torch.testing.assert_close(layer(x), mixed(layer, x, batch))
    running = 0.1 * batch[0], 0.9 + 0.1 * batch[1]
    torch.testing.assert_close((layer.running_mean, layer.running_var), running)
    torch.testing.assert_close(layer.eval()(x), mixed(layer, x, running))


def test_gradients() -> None:
    layer, x = build(4), torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    inputs = (x, *layer.parameters())
    assert torch.autograd.gradcheck(lambda x, *_: layer(x), inputs)


def test_a_head_of_mmpretrain_trains_with_it() -> None:
    pytest.importorskip('mmpretrain')
    from mmpretrain.models.heads import StackedLinearClsHead

    head = StackedLinearClsHead(
        num_classes=3,
        in_channels=8,
        mid_channels=[16],
        norm_cfg=dict(type='SN1d', scopes=('ln', 'bn')),
    )
    scores = head((torch.randn(4, 8),))
    nn.functional.cross_entropy(scores, torch.tensor([0, 1, 2, 0])).backward()
    (norm,) = (layer for layer in head.modules() if getattr(layer, 'scopes', None) == ('ln', 'bn'))
    assert norm.mean_weight.grad.abs().sum() > 0
