"""The configs of a zoo are found, and read without weights from other places."""

import pytest
from mmengine.config import Config

from sn_openmmlab.config_tree import walk
from studies.zoos.configs import find_configs, read_zoo_config, zoo_folder

# Of the oldest release that we test; newer ones have more.
LEAST = {'mmdet': 823, 'mmseg': 681, 'mmpretrain': 538}


def test_all_configs_but_bases_are_found_once(toolbox: str) -> None:
    found = list(find_configs(toolbox))
    assert len(found) == len(set(found)) >= LEAST[toolbox]
    assert not [path for path in found if '_base_' in path]
    assert all((zoo_folder(toolbox) / path).is_file() for path in found)


@pytest.mark.parametrize(
    'path',
    [
        # a string as the pretrained weights of the whole model, an init_cfg, and a teacher
        'mmseg/pspnet/pspnet_r50-d8_4xb2-40k_cityscapes-512x1024.py',
        'mmdet/retinanet/retinanet_r50_fpn_1x_coco.py',
        'mmdet/ld/ld_r18-gflv1-r101_fpn_1x_coco.py',
    ],
)
def test_no_weights_are_asked_for(path: str) -> None:
    toolbox, _, name = path.partition('/')
    pytest.importorskip(toolbox)
    plain = Config.fromfile(zoo_folder(toolbox) / name)
    assert _weights(plain.model)
    assert not _weights(read_zoo_config(toolbox, name).model)


def test_the_preprocessor_of_the_top_is_part_of_the_model() -> None:
    pytest.importorskip('mmpretrain')
    config = read_zoo_config('mmpretrain', 'resnet/resnet18_8xb16_cifar10.py')
    assert config.model.data_preprocessor.num_classes == 10


def _weights(model: dict) -> list[str]:
    """Return the values in a model that name a file."""
    values = (value for _, part in walk(model) for value in part.values())
    return [v for v in values if isinstance(v, str) and ('://' in v or v.endswith('.pth'))]
