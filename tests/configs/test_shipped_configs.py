"""Every shipped config builds what its name says, trains a step and predicts."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mmdet.registry import MODELS
from mmdet.testing import demo_mm_inputs
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope, init_default_scope
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

CONFIGS = Path(__file__).parents[2] / 'configs'
SHIPPED = sorted(
    file for file in CONFIGS.rglob('*.py') if '_base_' not in file.relative_to(CONFIGS).parts
)
NORMS = {'sn': SwitchNorm, 'gn': nn.GroupNorm, 'bn': nn.BatchNorm2d}
ANY_NORM = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)
# A ResNet has one norm after the stem, one after each convolution of its blocks (2 a block for
# 18, 3 for 50) and one in each shortcut that changes the shape (3 for 18, 4 for 50).
NORMS_OF_RESNET = {'r18': 1 + 8 * 2 + 3, 'r50': 1 + 16 * 3 + 4}
NORMS_OF_FPN = 4 + 4  # lateral and output convolutions
NORMS_OF_4CONV1FC = 4


class Shipped:
    """A shipped config with its model, built without pretrained weights."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.parts = re.split('[-_]', file.stem)
        self.config = Config.fromfile(file)
        self.pretrained = self.config.model.backbone.init_cfg
        self.config.model.backbone.init_cfg = None
        init_default_scope(self.config.default_scope)
        # With the usual threshold, a model that has learned nothing may find nothing.
        self.config.model.test_cfg.rcnn.score_thr = 0.0
        # Few regions, for speed.
        self.config.model.train_cfg.rcnn.sampler.num = 16
        self.config.model.train_cfg.rpn_proposal.max_per_img = 16
        self.config.model.test_cfg.rpn.max_per_img = 16
        torch.manual_seed(0)
        self.model = MODELS.build(self.config.model)
        self.model.init_weights()

    def norms(self, part: str) -> Counter:
        """How many norm layers of which type a part of the model has."""
        module = self.model.get_submodule(part)
        return Counter(type(layer) for layer in module.modules() if isinstance(layer, ANY_NORM))


@pytest.fixture(scope='module', params=SHIPPED, ids=lambda file: file.stem)
def shipped(request: pytest.FixtureRequest) -> Iterator[Shipped]:
    """Each shipped config in turn."""
    yield Shipped(request.param)
    # The toolbox's scope is global: leave none to the tests of other folders.
    DefaultScope._instance_dict.clear()


def test_there_are_configs_of_every_norm() -> None:
    assert {part for file in SHIPPED for part in re.split('[-_]', file.stem)} > {*NORMS, 'all'}


def test_norm_layers_are_of_the_type_and_number_that_the_name_says(shipped: Shipped) -> None:
    assert shipped.parts[:2] == ['faster', 'rcnn'], 'teach this test the new detector'
    depth, neck, norm, extent = shipped.parts[2:6]
    assert (neck, extent) == ('fpn', 'all'), 'teach this test the new place of the norm'
    layer = NORMS[norm]
    counts = {
        'backbone': NORMS_OF_RESNET[depth],
        'neck': NORMS_OF_FPN,
        'roi_head.bbox_head': NORMS_OF_4CONV1FC,
    }
    for part, count in counts.items():
        assert shipped.norms(part) == {layer: count}, part
    # Nowhere else is another one.
    assert shipped.norms('') == {layer: sum(counts.values())}


def test_package_is_imported_by_the_config_itself(shipped: Shipped) -> None:
    expected = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
    assert shipped.config.custom_imports == expected


def test_images_are_normalized_as_torchvisions(shipped: Shipped) -> None:
    images = shipped.model.data_preprocessor
    # ImageNet's means and deviations of [0, 1], in RGB.
    means, deviations = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]) * 255
    torch.testing.assert_close(images.mean.flatten(), means)
    torch.testing.assert_close(images.std.flatten(), deviations)
    assert images._channel_conversion, 'images are read as BGR'


def test_fine_tuning_freezes_the_first_stage_and_scratch_nothing(shipped: Shipped) -> None:
    shipped.model.train()
    frozen = {
        name.removeprefix('backbone.').split('.')[0]
        for name, parameter in shipped.model.named_parameters()
        if not parameter.requires_grad
    }
    norms = [layer for layer in shipped.model.modules() if isinstance(layer, ANY_NORM)]
    asleep = sum(not layer.training for layer in norms)
    # The small models of the demo start from nothing too, without saying it in their name.
    if 'scratch' in shipped.parts or shipped.file.parent.name == 'demo':
        assert shipped.config.model.backbone.frozen_stages == -1
        assert shipped.pretrained is None
        assert frozen == set()
        assert asleep == 0
    else:
        assert shipped.config.model.backbone.frozen_stages == 1
        assert shipped.pretrained.type == 'Pretrained'
        assert frozen == {'conv1', 'sn1', 'layer1'}
        # Of stage 1, three blocks of three convolutions and a shortcut; and the stem.
        assert asleep == 1 + 3 * 3 + 1


def test_weights_decay_but_norms_do_not(shipped: Shipped) -> None:
    wrapper = build_optim_wrapper(shipped.model, shipped.config.optim_wrapper)
    decay = {
        id(parameter): group['weight_decay']
        for group in wrapper.optimizer.param_groups
        for parameter in group['params']
    }
    seen = Counter()
    for layer in shipped.model.modules():
        for name, parameter in layer.named_parameters(recurse=False):
            if not parameter.requires_grad:
                continue
            if isinstance(layer, ANY_NORM):
                assert decay[id(parameter)] == 0, name
                seen[name] += 1
            elif isinstance(layer, nn.Conv2d | nn.Linear) and name == 'weight':
                assert decay[id(parameter)] == 1e-4
                seen['convolutions'] += 1
    assert seen['weight'] == seen['bias'] > 0
    assert seen['convolutions'] > 20
    if 'sn' in shipped.parts:
        assert seen['mean_weight'] == seen['var_weight'] == seen['weight']


def test_1x_schedule_is_that_of_detectron(shipped: Shipped) -> None:
    config = shipped.config
    if '1x' in shipped.parts:
        assert config.train_cfg.max_epochs == 12
        (steps,) = [step for step in config.param_scheduler if step.type == 'MultiStepLR']
        assert (steps.milestones, steps.gamma, steps.by_epoch) == ([8, 11], 0.1, True)
        # 0.02 for 16 images.
        assert config.optim_wrapper.optimizer.lr == 0.02
        assert config.auto_scale_lr.base_batch_size == 16
    assert config.optim_wrapper.optimizer.weight_decay == 1e-4
    assert config.optim_wrapper.optimizer.momentum == 0.9
    # The last step of the schedule comes before training ends.
    for schedule in config.param_scheduler:
        if schedule.type == 'MultiStepLR':
            assert max(schedule.milestones) < config.train_cfg.max_epochs == schedule.end


def test_head_has_the_classes_of_the_data(shipped: Shipped) -> None:
    classes = shipped.config.model.roi_head.bbox_head.num_classes
    for loader in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        dataset = shipped.config[loader].dataset
        assert dataset.type == 'CocoDataset'
        names = dataset.metainfo.classes if 'metainfo' in dataset else range(80)
        assert len(names) == classes, loader


def test_metrics_are_of_the_data_that_is_loaded(shipped: Shipped) -> None:
    for split in ('val', 'test'):
        dataset = shipped.config[f'{split}_dataloader'].dataset
        annotations = Path(dataset.data_root, dataset.ann_file)
        assert Path(shipped.config[f'{split}_evaluator'].ann_file) == annotations


def test_a_step_learns_and_a_prediction_is_finite(shipped: Shipped) -> None:
    model = shipped.model
    classes = shipped.config.model.roi_head.bbox_head.num_classes
    batch = demo_mm_inputs(2, (3, 64, 96), num_items=[2, 1], num_classes=classes)
    wrapper = build_optim_wrapper(model, shipped.config.optim_wrapper)
    before = {name: value.clone() for name, value in model.named_parameters()}
    model.train()
    losses = model.train_step(batch, wrapper)
    assert set(losses) >= {'loss', 'loss_rpn_cls', 'loss_rpn_bbox', 'loss_cls', 'loss_bbox'}
    assert all(torch.isfinite(torch.as_tensor(loss)) for loss in losses.values())
    assert losses['loss'] > 0
    for name, value in model.named_parameters():
        assert torch.isfinite(value).all(), name
        if not value.requires_grad:
            assert torch.equal(value, before[name]), name
    moved = {name for name, value in model.named_parameters() if not value.equal(before[name])}
    if 'sn' in shipped.parts:
        head = 'roi_head.bbox_head.shared_convs.0.sn.'
        assert {head + 'mean_weight', head + 'var_weight', head + 'weight', head + 'bias'} <= moved

    model.eval()
    with torch.no_grad():
        results = model.test_step(batch)
    assert len(results) == 2
    for result in results:
        found = result.pred_instances
        assert 0 < len(found) <= shipped.config.model.test_cfg.rcnn.max_per_img
        assert torch.isfinite(found.bboxes).all()
        assert ((found.scores >= 0) & (found.scores <= 1)).all()
        assert ((found.labels >= 0) & (found.labels < classes)).all()


def without_norms(value: object) -> object:
    """A config without what chooses the norm."""
    if isinstance(value, dict):
        return {key: without_norms(item) for key, item in value.items() if key != 'norm_cfg'}
    if isinstance(value, list | tuple):
        return [without_norms(item) for item in value]
    return value


@pytest.mark.parametrize('rival', [file for file in SHIPPED if not re.search('[_-]sn-', file.stem)])
def test_rivals_differ_in_nothing_but_the_norm(rival: Path) -> None:
    ours = rival.with_name(re.sub('(?<=[_-])[a-z]+(?=-all)', 'sn', rival.name))
    configs = [Config.fromfile(file)._cfg_dict.to_dict() for file in (ours, rival)]
    assert without_norms(configs[0]) == without_norms(configs[1])
    assert configs[0]['norm_cfg'] != configs[1]['norm_cfg']


def test_demo_config_finds_the_data_that_the_demo_makes(tmp_path: Path) -> None:
    pytest.importorskip('skimage')
    pytest.importorskip('sklearn')
    from mmdet.registry import DATASETS

    from sn_openmmlab.demo.dataset import DemoParameters, make_demo_data

    made = make_demo_data(tmp_path / 'demo', DemoParameters(train=2, val=1))
    init_default_scope('mmdet')
    for file in (CONFIGS / 'demo').glob('*.py'):
        config = Config.fromfile(file)
        for split, count in (('train', 2), ('val', 1), ('test', 1)):
            settings = config[f'{split}_dataloader'].dataset
            assert settings.data_root == 'data/demo/'
            settings.data_root = f'{made.root}/'
            dataset = DATASETS.build(settings)
            assert len(dataset) == count
            items = [dataset[i] for i in range(count)]
            boxes = sum(len(item['data_samples'].gt_instances) for item in items)
            assert boxes == made.instances['train' if split == 'train' else 'val']
            assert items[0]['inputs'].shape == (3, 192, 256)
    DefaultScope._instance_dict.clear()
