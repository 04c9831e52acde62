"""Places of layers are read from the names and shapes of weights, as real networks have them."""

import pytest
import torchvision
from torch import nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.analysis.importance import importance_ratios
from sn_openmmlab.analysis.places import find_places

SN = ('weight', 'bias', 'mean_weight', 'var_weight', 'running_mean')


def weights(*layers: tuple[str, tuple[int, ...] | int]) -> dict[str, tuple[int, ...]]:
    """Return shapes by name: a tuple is the weight of a convolution, a number the C of an SN."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, shape in layers:
        if isinstance(shape, tuple):
            shapes[f'{name}.weight'] = shape
        else:
            parts = {part: (3,) if part.endswith('_weight') else (shape,) for part in SN}
            shapes |= {f'{name}.{part}': size for part, size in parts.items()}
    return shapes


@pytest.mark.parametrize(
    ('shape', 'conv'),
    [
        ((8, 4, 3, 3), '3x3'),
        ((8, 4, 1, 1), '1x1'),
        ((8, 4, 7, 7), '7x7'),
        ((8, 4, 1, 7), '1x7'),
        ((8, 4, 3, 3, 3), '3x3x3'),
        ((8, 4, 5), '5'),
        ((8, 1, 3, 3), 'depthwise'),
        ((4, 8, 4, 4), '4x4'),  # transposed
        ((8, 4), 'linear'),
        ((4, 8), 'none'),
        ((4, 16, 3, 3), 'none'),
    ],
)
def test_convolution_is_named_by_its_kernel(shape: tuple, conv: str) -> None:
    shapes = weights(('stem', (4, 3, 3, 3)), ('conv', shape), ('sn', 8))
    assert find_places(shapes)['sn'].conv == conv


def test_first_convolution_of_a_grey_image_is_not_depthwise() -> None:
    assert find_places(weights(('conv', (8, 1, 3, 3)), ('sn', 8)))['sn'] == ('3x3', 1, None)


def test_shortcut_is_known_by_its_name_and_does_not_count_as_depth() -> None:
    places = find_places(
        weights(
            *(('l.0.conv1', (8, 3, 3, 3)), ('l.0.sn1', 8)),
            *(('l.0.conv2', (8, 8, 3, 3)), ('l.0.sn2', 8)),
            *(('l.0.downsample.0', (8, 3, 1, 1)), ('l.0.downsample.1', 8)),
            *(('l.1.conv1', (8, 8, 3, 3)), ('l.1.sn1', 8)),
        )
    )
    assert [(place.conv, place.depth) for place in places.values()] == [
        ('3x3', 1),
        ('3x3', 2),
        ('shortcut', 2),
        ('3x3', 3),
    ]


def test_layer_behind_another_norm_has_no_convolution() -> None:
    # As the identity branch of RepVGG.
    shapes = weights(('branch_1x1.conv', (8, 8, 1, 1)), ('branch_1x1.norm', 8), ('branch_norm', 8))
    assert find_places(shapes)['branch_norm'] == ('none', 1, None)


def test_convolutions_that_stand_before_all_norms_are_told_apart_by_number() -> None:
    shapes = weights(
        *(('a.conv1', (8, 8, 1, 1)), ('a.conv2', (8, 8, 3, 3))), *(('a.bn1', 8), ('a.bn2', 8))
    )
    places = find_places(shapes)
    assert [places['a.bn1'].conv, places['a.bn2'].conv] == ['1x1', '3x3']


def test_offsets_of_a_deformable_convolution_are_no_layer() -> None:
    shapes = weights(
        ('conv2', (8, 8, 3, 3)), ('conv2.conv_offset', (18, 8, 1, 1)), ('sn2', 8), ('sn3', 8)
    )
    assert find_places(shapes)['sn2'] == ('3x3', 1, None)


def test_depth_of_resnet_50_is_the_length_of_its_path() -> None:
    model = torchvision.models.resnet50(norm_layer=SwitchNorm)
    places = [row.place for row in importance_ratios(model)]
    # 53 SN layers (the paper, Fig. 7): 16 blocks of 1×1, 3×3, 1×1, four shortcuts, the stem.
    kinds = [place.conv for place in places]
    counts = {kind: kinds.count(kind) for kind in kinds}
    assert counts == {'7x7': 1, '1x1': 32, '3x3': 16, 'shortcut': 4}
    # The name counts the linear layer, too.
    assert max(place.depth for place in places) == 50 - 1
    assert sum(place.stride == 2 for place in places if place.conv == '3x3') == 3
    assert places[0] == ('7x7', 1, 2)


def test_modules_of_mmcv_have_their_places() -> None:
    pytest.importorskip('mmcv.cnn')
    from mmcv.cnn import ConvModule, DepthwiseSeparableConvModule

    cfg = dict(norm_cfg=dict(type='SN'))
    model = nn.Sequential(
        ConvModule(3, 8, 3, stride=2, **cfg), DepthwiseSeparableConvModule(8, 4, 3, **cfg)
    )
    assert [row.place for row in importance_ratios(model)] == [
        ('3x3', 1, 2),
        ('depthwise', 2, 1),
        ('1x1', 3, 1),
    ]
