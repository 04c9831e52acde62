"""The weights that the toolboxes' ResNet has with Switchable Normalization."""

import re
from collections.abc import Iterable

Shape = tuple[int, ...]

# By the number of control parameters that a layer has.
SCOPES = {2: ('in', 'ln'), 3: ('in', 'ln', 'bn')}
# By depth, in each stage.
BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}


def resnet_shapes(depth: int, controls: int) -> dict[str, Shape]:
    """Return name and shape of each weight but ``num_batches_tracked``, which old files lack.

    Args:
        depth: 50 or 101.
        controls: how many scopes each layer mixes, a key of ``SCOPES``.
    """
    shapes = _conv_and_norm('conv1', 'sn1', (64, 3, 7, 7), controls)
    width_in = 64
    for stage, blocks in enumerate(BLOCKS[depth]):
        width = 64 * 2**stage
        for block in range(blocks):
            shapes |= _block(f'layer{stage + 1}.{block}', width_in, width, controls, block == 0)
            width_in = 4 * width
    return shapes


def norm_shapes(name: str, channels: int, controls: int) -> dict[str, Shape]:
    """Return name and shape of each weight of the SN layer ``name``."""
    shapes = {f'{name}.{part}': (channels,) for part in ('weight', 'bias')}
    shapes |= {f'{name}.{part}': (controls,) for part in ('mean_weight', 'var_weight')}
    if 'bn' in SCOPES[controls]:
        shapes |= {f'{name}.{part}': (channels,) for part in ('running_mean', 'running_var')}
    return shapes


def depth_of(names: Iterable[str]) -> int:
    """Return the depth of the ResNet that has these weights, even where some are missing."""
    third = [int(found[1]) for name in names if (found := re.match(r'layer3\.(\d{1,9})\.', name))]
    return 101 if max(third, default=0) >= BLOCKS[50][2] else 50


def _block(name: str, width_in: int, width: int, controls: int, first: bool) -> dict[str, Shape]:
    convs = [(width, width_in, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
    shapes = {}
    for i, shape in enumerate(convs, 1):
        shapes |= _conv_and_norm(f'{name}.conv{i}', f'{name}.sn{i}', shape, controls)
    if first:
        shortcut = (f'{name}.downsample.0', f'{name}.downsample.1')
        shapes |= _conv_and_norm(*shortcut, (4 * width, width_in, 1, 1), controls)
    return shapes


def _conv_and_norm(conv: str, norm: str, shape: Shape, controls: int) -> dict[str, Shape]:
    return {f'{conv}.weight': shape, **norm_shapes(norm, shape[0], controls)}
