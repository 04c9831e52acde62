"""Deltas and boxes are those of Detectron's formula."""

import math

import pytest
import torch
from torch import Tensor

pytest.importorskip('mmdet')
from mmdet.structures.bbox import HorizontalBoxes

from sn_openmmlab.detectron.box_coder import DetectronBBoxCoder

STDS = (0.1, 0.1, 0.2, 0.2)


@pytest.fixture
def boxes() -> Tensor:
    """Some boxes of at least one pixel."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(0, 80, (50, 2), generator=generator).float()
    return torch.cat([first, first + torch.randint(0, 20, (50, 2), generator=generator)], 1)


def decoded(box: Tensor, delta: Tensor) -> list[float]:
    """Return the box to which a delta leads, in float64, not clipped."""
    dx, dy, dw, dh = (delta.double() * torch.tensor(STDS).double()).tolist()
    x1, y1, x2, y2 = box.tolist()
    width, height = x2 - x1 + 1, y2 - y1 + 1
    x, y = x1 + width / 2 + dx * width, y1 + height / 2 + dy * height
    width *= math.exp(min(dw, math.log(1000 / 16)))
    height *= math.exp(min(dh, math.log(1000 / 16)))
    return [x - width / 2, y - height / 2, x + width / 2 - 1, y + height / 2 - 1]


def test_boxes_are_those_of_the_formula(boxes: Tensor) -> None:
    deltas = torch.randn(50, 3 * 4, generator=torch.Generator().manual_seed(1)) * 4
    # Far above the largest factor, and far below what MMDetection lets a box shrink.
    deltas[:5, 2:4], deltas[5:10, 2:4] = 40.0, -60.0
    made = DetectronBBoxCoder(target_stds=STDS).decode(boxes, deltas)
    expected = torch.tensor(
        [
            [number for delta in row.split(4) for number in decoded(box, delta)]
            for box, row in zip(boxes, deltas, strict=True)
        ]
    )
    assert torch.allclose(made, expected, rtol=1e-5, atol=1e-3)
    assert (made[5:10, 2:4] - made[5:10, :2] + 1 < 1e-3).all()


def test_boxes_are_clipped_to_whole_pixels(boxes: Tensor) -> None:
    deltas = torch.randn(50, 8, generator=torch.Generator().manual_seed(1)) * 20
    coder = DetectronBBoxCoder(target_stds=STDS)
    made, free = coder.decode(boxes, deltas, max_shape=(60, 70, 3)), coder.decode(boxes, deltas)
    expected = free.clone()
    expected[:, 0::2] = free[:, 0::2].clamp(0, 69)
    expected[:, 1::2] = free[:, 1::2].clamp(0, 59)
    assert torch.equal(made, expected)
    unclipped = DetectronBBoxCoder(target_stds=STDS, clip_border=False)
    assert torch.equal(unclipped.decode(boxes, deltas, max_shape=(60, 70)), free)


def test_deltas_lead_to_the_boxes_that_they_were_made_for(boxes: Tensor) -> None:
    coder = DetectronBBoxCoder(target_means=(0.1, 0.0, 0.0, 0.2), target_stds=STDS)
    targets = boxes.flip(0)
    deltas = coder.encode(boxes, targets)
    assert torch.allclose(coder.decode(boxes, deltas), targets, atol=1e-3)
    box, target = torch.tensor([[0.0, 0, 9, 4]]), torch.tensor([[5.0, 5, 24, 9]])
    # 10x5 pixels around (5, 2.5) become 20x5 around (15, 7.5).
    deltas = DetectronBBoxCoder().encode(box, target)
    assert torch.allclose(deltas, torch.tensor([[1.0, 1.0, math.log(2), 0.0]]))
    assert DetectronBBoxCoder().decode(box[:0], deltas[:0], (9, 9)).shape == (0, 4)


@pytest.mark.parametrize('max_shape', [None, (60, 70)])
def test_boxes_of_mmdetection_and_batches_give_the_same(
    boxes: Tensor, max_shape: tuple[int, int] | None
) -> None:
    deltas = torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
    expected = DetectronBBoxCoder().decode(boxes, deltas, max_shape)
    typed = DetectronBBoxCoder(use_box_type=True)
    made = typed.decode(HorizontalBoxes(boxes), deltas, max_shape)
    assert isinstance(made, HorizontalBoxes)
    assert torch.equal(made.tensor, expected)
    assert torch.equal(typed.encode(HorizontalBoxes(boxes), made), typed.encode(boxes, expected))
    batch = boxes.unflatten(0, (2, 25)), deltas.unflatten(0, (2, 25))
    made = DetectronBBoxCoder().decode(*batch, max_shape).flatten(0, 1)
    # MMDetection computes batches in another order.
    assert torch.allclose(made, expected, atol=1e-3)
