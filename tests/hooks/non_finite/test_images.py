"""Which images of a batch are named."""

import math

import torch
from mmengine.structures import BaseDataElement

from sn_openmmlab.hooks.non_finite.images import image_paths, of_rows


def _sample(**info: object) -> BaseDataElement:
    return BaseDataElement(metainfo=info)


def test_paths_of_a_batch_and_of_its_branches() -> None:
    samples = [_sample(img_path='a.jpg'), _sample(img_id=7), _sample(sample_idx=3), _sample()]
    assert image_paths(dict(data_samples=samples)) == ['a.jpg', 'img_id=7', 'sample_idx=3', '']
    branches = dict(sup=[_sample(img_path='a.jpg'), None], unsup=[None, _sample(img_path='b.jpg')])
    assert image_paths(dict(data_samples=branches)) == ['a.jpg', 'b.jpg']
    for batch in (None, [torch.ones(2), torch.ones(2)], dict(inputs=[]), dict(data_samples=None)):
        assert not any(image_paths(batch))


def test_rows_that_are_not_finite_are_named() -> None:
    paths = ['a.jpg', 'b.jpg', 'c.jpg']
    maps = torch.ones(3, 2, 4)
    maps[1, 1, 3] = math.nan
    assert of_rows(paths, maps) == ['b.jpg']
    assert of_rows(paths, torch.tensor([math.inf, 1, -math.inf])) == ['a.jpg', 'c.jpg']
    # What has other rows, as regions have, is of all images.
    assert of_rows(paths, torch.full((12, 4), math.nan)) == paths
    assert of_rows(paths, torch.tensor(math.nan)) == paths
    assert of_rows(['', ''], torch.full((2,), math.nan)) == []
