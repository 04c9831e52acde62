"""A network for images becomes one for video that gives the same on clips of equal frames."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from sn_openmmlab import SwitchNorm, SyncSwitchNorm, inflate_module, inflate_weights
from sn_openmmlab.layers.convert.inflated_conv import InflatedConv3d

FRAMES = 4


class OwnConv(nn.Conv2d):
    """Computes something else."""

    def forward(self, x: Tensor) -> Tensor:
        return -super().forward(x)


def every_layer() -> nn.Sequential:
    """Return a network with every kind of layer that becomes another one."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
        SwitchNorm(8),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
        nn.Conv2d(8, 8, (3, 5), padding='same', groups=2, padding_mode='reflect'),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 6, 1),
        nn.GroupNorm(2, 6),
        nn.AvgPool2d((2, 1), ceil_mode=True, count_include_pad=False),
        nn.Conv2d(6, 6, 3, padding=(2, 1), dilation=(2, 1)),
        nn.InstanceNorm2d(6),
        nn.Dropout2d(0.5),
        SyncSwitchNorm(6, scopes=('gn', 'bn'), num_groups=3),
        nn.AdaptiveMaxPool2d((3, 2)),
        nn.Conv2d(6, 4, 2, padding='valid'),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 5),
    )


def randomize(module: nn.Module) -> nn.Module:
    """Fill all parameters and statistics, in float64."""
    module.double()
    with torch.no_grad():
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if tensor.is_floating_point():
                tensor.normal_(0, 0.5)
            if name.endswith('running_var'):
                tensor.abs_().add_(0.5)
    return module


def still(images: Tensor) -> Tensor:
    """Return clips of which each shows one image, (N, C, T, H, W)."""
    return images.unsqueeze(2).expand(-1, -1, FRAMES, -1, -1)


@pytest.mark.parametrize('frames', [1, 3, 5])
def test_a_still_clip_gives_what_its_frame_gave(frames: int) -> None:
    images = torch.randn(2, 3, 32, 28, dtype=torch.float64)
    network = randomize(every_layer()).eval()
    expected = network(images)
    assert inflate_module(network, frames) is network
    torch.testing.assert_close(network(still(images)), expected)


@pytest.mark.parametrize('training', [True, False])
def test_a_resnet_of_a_toolbox_gives_the_same_features(training: bool) -> None:
    pytest.importorskip('mmdet')
    from mmdet.models.backbones import ResNet

    network = randomize(
        ResNet(
            50,
            base_channels=8,
            stem_channels=8,
            deep_stem=True,
            avg_down=True,
            norm_cfg=dict(type='SN'),
            norm_eval=False,
        )
    )
    images = torch.randn(2, 3, 64, 48, dtype=torch.float64)
    # Its train() returns nothing.
    network.train(training)
    expected = copy.deepcopy(network)(images)
    clips = inflate_module(network)(still(images))
    for clip, features in zip(clips, expected, strict=True):
        torch.testing.assert_close(clip, still(features))


@pytest.mark.parametrize(
    ('scope', 'pooled'), [('bn', (0, 2, 3, 4)), ('ln', (1, 2, 3, 4)), ('in', (2, 3, 4))]
)
def test_statistics_are_those_of_the_whole_clip(scope: str, pooled: tuple[int, ...]) -> None:
    layer = inflate_module(SwitchNorm(3, momentum=1, scopes=(scope,)))
    x = 3 * torch.randn(2, 3, 5, 6, 7) + torch.arange(5).view(5, 1, 1)
    mean, var = x.mean(pooled, keepdim=True), x.var(pooled, correction=0, keepdim=True)
    torch.testing.assert_close(layer(x), (x - mean) / (var + layer.eps).sqrt())
    if scope == 'bn':
        torch.testing.assert_close(layer.running_mean, mean.flatten())
        torch.testing.assert_close(layer.running_var, var.flatten())


def test_kernels_see_the_frames_around_them() -> None:
    conv = nn.Conv2d(2, 4, 3, padding=1, stride=2)
    kernel, bias = conv.weight.detach().clone(), conv.bias
    inflate_module(conv, 5)
    x = torch.randn(1, 2, 9, 6, 6)
    shown = torch.cat([x[:, :, :1], x[:, :, :1], x, x[:, :, -1:], x[:, :, -1:]], dim=2)
    # A kernel that repeats sees the average of the frames.
    seen = torch.stack([shown[:, :, t : t + 5].mean(2) for t in range(9)], dim=2)
    expected = [
        nn.functional.conv2d(frame, kernel, bias, padding=1, stride=2) for frame in seen.unbind(2)
    ]
    torch.testing.assert_close(conv(x), torch.stack(expected, dim=2))
    assert conv.weight.shape == (4, 2, 5, 3, 3)


def test_gradients() -> None:
    conv = inflate_module(nn.Conv2d(2, 2, 3, padding=1)).double()
    x = torch.randn(1, 2, 3, 4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: conv(x), (x, *conv.parameters()), fast_mode=True)


def test_layers_stay_the_same_objects_with_their_settings() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2)).eval()
    conv, norm, pool = network
    conv.weight.requires_grad = False
    shapes = []
    conv.register_forward_hook(lambda _layer, _args, y: shapes.append(tuple(y.shape)))
    held = norm.weight
    inflate_module(network)
    assert list(network) == [conv, norm, pool]
    assert [type(x) for x in network] == [InflatedConv3d, nn.BatchNorm3d, nn.MaxPool3d]
    assert not any(layer.training for layer in network)
    assert not conv.weight.requires_grad
    assert norm.weight is held
    network(torch.randn(1, 3, 2, 8, 8))
    assert shapes == [(1, 4, 2, 6, 6)]


def test_weights_inflate_as_the_network_does() -> None:
    network = randomize(every_layer())
    weights = network.state_dict()
    video = inflate_module(randomize(every_layer()))
    inflated = inflate_weights(weights, video)
    expected = inflate_module(network).state_dict()
    assert inflated.keys() == expected.keys()
    for name, weight in inflated.items():
        assert weight.equal(expected[name]), name
    # SN layers record their settings there, and check them.
    assert inflated._metadata['1']['scopes'] == ['in', 'ln', 'bn']
    video.load_state_dict(inflated)


def test_weights_of_another_network_are_refused() -> None:
    video = inflate_module(nn.Conv2d(3, 4, 3))
    with pytest.raises(ValueError, match=r'weight has the shape \(5, 3, 3, 3\), which does not'):
        inflate_weights(nn.Conv2d(3, 5, 3).state_dict(), video)


@pytest.mark.parametrize(
    ('layer', 'name'),
    [
        (nn.ConvTranspose2d(3, 3, 2), 'ConvTranspose2d'),
        (OwnConv(3, 3, 3), 'OwnConv'),
        (nn.LazyConv2d(3, 3), 'LazyConv2d'),
        (parametrizations.weight_norm(nn.Conv2d(3, 3, 3)), 'ParametrizedConv2d'),
        (nn.utils.weight_norm(nn.Conv2d(3, 3, 3)), 'Conv2d'),
        (nn.utils.spectral_norm(nn.Conv2d(3, 3, 3)), 'Conv2d'),
        (prune.identity(nn.Conv2d(3, 3, 3), 'weight'), 'Conv2d'),
        # On clips these fail, or take time for height.
        (nn.Upsample(scale_factor=2), 'Upsample'),
        (nn.PixelShuffle(2), 'PixelShuffle'),
        (nn.PixelUnshuffle(2), 'PixelUnshuffle'),
        (nn.Unfold(2), 'Unfold'),
        (nn.Fold(4, 2), 'Fold'),
    ],
)
def test_unknown_layers_are_refused_and_nothing_changes(layer: nn.Module, name: str) -> None:
    network = nn.Sequential(nn.Conv2d(3, 3, 3), layer)
    with pytest.raises(ValueError, match=f'does not know what 1, a {name}, does with a clip'):
        inflate_module(network)
    assert type(network[0]) is nn.Conv2d


def test_a_padding_of_unequal_sides_is_refused() -> None:
    with pytest.raises(ValueError, match="padding='same' and the kernel"):
        inflate_module(nn.Conv2d(3, 3, 2, padding='same'))


@pytest.mark.parametrize(
    ('frames', 'error', 'words'),
    [(2, ValueError, 'an odd number'), (-1, ValueError, 'odd'), (True, TypeError, 'an integer')],
)
def test_frames_are_checked(frames: int, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        inflate_module(nn.Conv2d(3, 3, 3), frames)
