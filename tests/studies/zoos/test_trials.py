"""A model of each architecture trains a step with SN at two images, and at one where it can."""

import pytest

from studies.presentation.zoo_tables import outcome
from studies.zoos.configs import find_configs
from studies.zoos.sample import SAMPLE
from studies.zoos.trials import try_config

ALL = [f'{toolbox}/{path}' for toolbox, paths in SAMPLE.items() for path in paths]
# A small model of each kind: detector, segmenter with a pooled image, classifier.
FEW = [
    'mmdet/yolo/yolov3_mobilenetv2_8xb24-320-300e_coco.py',
    'mmseg/bisenetv2/bisenetv2_fcn_4xb4-160k_cityscapes-1024x1024.py',
    'mmpretrain/shufflenet_v2/shufflenet-v2-1x_16xb64_in1k.py',
]


def check(name: str) -> None:
    toolbox, _, path = name.partition('/')
    pytest.importorskip(toolbox)
    record = try_config(toolbox, path)
    two, one = record['2'], record['1']
    assert 'fails' not in two, two
    assert two['norms'] > 0
    # Where BatchNorm can train on one image, SN can.
    assert 'fails' not in one or 'fails' in one['own'], one
    for result in (two, one):
        if 'fails' in result:
            continue
        assert result['finite'], outcome(result)
        assert 'fixed' not in result
        # A branch that the loss does not depend on has no gradient with any norm.
        own = result.get('own', {})
        assert result.get('unreached', []) == own.get('unreached', []) or 'fails' in own, result


@pytest.mark.parametrize('name', FEW)
def test_a_few_models_train_a_step(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize('name', ALL)
def test_each_architecture_trains_a_step(name: str) -> None:
    check(name)


def test_the_sample_names_configs_of_the_zoos_once(toolbox: str) -> None:
    assert set(FEW) <= set(ALL)
    assert len(set(ALL)) == len(ALL) > 140
    assert set(SAMPLE[toolbox]) <= set(find_configs(toolbox))
