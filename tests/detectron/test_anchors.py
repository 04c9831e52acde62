"""The anchors are those of the authors' code, to the last bit."""

import numpy as np
import pytest
import torch

from tests import recorded_detectors

pytest.importorskip('mmdet')
from sn_openmmlab.detectron.anchors import DetectronAnchorGenerator

RATIOS = [0.5, 1.0, 2.0]
# Width and height at each level of the pyramid, as their code has them.
SIDES = {
    4: [(48, 24), (32, 32), (24, 48)],
    8: [(88, 48), (64, 64), (48, 96)],
    16: [(184, 96), (128, 128), (88, 176)],
    32: [(360, 176), (256, 256), (184, 368)],
    64: [(728, 368), (512, 512), (360, 720)],
}


def test_pyramid_has_the_recorded_anchors() -> None:
    made = DetectronAnchorGenerator(strides=list(SIDES), ratios=RATIOS, scales=[8]).base_anchors
    theirs = recorded_detectors.read(recorded_detectors.CASES[0], part=True)['base_anchors']
    assert len(made) == len(theirs) == 5
    for ours, expected, sides in zip(made, theirs, SIDES.values(), strict=True):
        assert torch.equal(ours, expected)
        assert (ours[:, 2:] - ours[:, :2] + 1).tolist() == [list(side) for side in sides]


def test_c4_has_its_sizes_inside_its_ratios() -> None:
    (made,) = DetectronAnchorGenerator(
        strides=[16], ratios=RATIOS, scales=[2, 4, 8, 16, 32]
    ).base_anchors
    # At a stride of 16 the sides are 23x12, 16x16 and 11x22.
    sides = np.array([(23, 12), (16, 16), (11, 22)])[:, None] * np.array([2, 4, 8, 16, 32])[:, None]
    sides = sides.reshape(-1, 2)
    expected = np.concatenate([7.5 - (sides - 1) / 2, 7.5 + (sides - 1) / 2], 1)
    assert torch.equal(made, torch.from_numpy(expected).float())


def test_grid_moves_them_by_the_stride() -> None:
    generator = DetectronAnchorGenerator(strides=[16], ratios=RATIOS, scales=[2])
    (grid,) = generator.grid_priors([(2, 3)], device='cpu')
    (base,) = generator.base_anchors
    assert torch.equal(grid[3 * 5 :], base + torch.tensor([32, 16, 32, 16]))
