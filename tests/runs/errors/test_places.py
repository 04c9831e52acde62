"""The part of a config or of a run from which an error comes is named."""

from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from torch import nn

from sn_openmmlab.runs.errors.places import find_place, images_of

CONFIG = Config(
    dict(
        backbone=dict(type='Conv2d', in_channels='three', out_channels=2, kernel_size=1),
        neck=dict(type='Linear', in_features=2, out_features='two'),
        head=dict(type='Linear', in_features=2, out_features=3),
    )
)


def caught(function: Any) -> Exception:
    with pytest.raises(Exception) as error:
        function()
    return error.value


def test_part_of_the_config_by_its_key() -> None:
    place = find_place(caught(lambda: MODELS.build(CONFIG.backbone)), CONFIG)
    assert (str(place), place.is_built) == ('backbone (Conv2d)', True)


def test_one_of_several_parts_of_a_type_by_its_settings() -> None:
    place = find_place(caught(lambda: MODELS.build(CONFIG.neck)), CONFIG)
    assert str(place) == 'neck (Linear)'


def test_part_that_the_config_lacks_by_its_type() -> None:
    settings = dict(type='Linear', in_features=9, out_features='nine')
    assert str(find_place(caught(lambda: MODELS.build(settings)), CONFIG)) == 'Linear'


def test_layer_by_its_name_in_the_model() -> None:
    model = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1)))
    place = find_place(caught(lambda: model(torch.zeros(1, 2))), CONFIG)
    assert (str(place), place.is_built) == ('1.1 (Linear)', False)


def test_no_place() -> None:
    error = caught(lambda: int('x'))
    assert find_place(error, CONFIG) is None
    assert images_of(error) == []


def test_images_of_the_batch_on_which_a_loop_failed() -> None:
    def run_iter(data_batch: dict) -> None:
        raise ValueError

    batch = dict(data_samples=[dict(img_path='a.jpg'), dict(img_path='b.jpg'), dict()])
    assert images_of(caught(lambda: run_iter(batch))) == ['a.jpg', 'b.jpg']
