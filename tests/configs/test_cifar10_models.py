"""Every shipped small classifier has the norms that its name says, trains a step and predicts."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

pytest.importorskip('mmpretrain')

from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample

CONFIGS = Path(__file__).parents[2] / 'configs'
CIFAR10 = sorted(CONFIGS.glob('classification/cifar10/*.py'))
SHIPPED = [*CIFAR10, *CONFIGS.glob('demo/resnet*.py')]
LAYERS = {'sn': SwitchNorm, 'gn': nn.GroupNorm, 'bn': nn.BatchNorm2d}
ANY_NORM = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)
# One after the stem, one after each convolution of the blocks, one in each shortcut that changes
# the shape. Ten layers are the stem, two stages of two blocks, and the classifier.
NORMS = {'resnet10': 1 + 2 * 2 * 2 + 2, 'resnet18': 1 + 4 * 2 * 2 + 3}
DETECTOR = CONFIGS / 'demo/faster-rcnn_r18_fpn_sn-all_digits.py'


@pytest.fixture(scope='module', params=SHIPPED, ids=lambda file: file.stem)
def file(request: pytest.FixtureRequest) -> Path:
    """Return each shipped config in turn."""
    return request.param


@pytest.fixture(scope='module')
def config(file: Path) -> Config:
    return Config.fromfile(file)


@pytest.fixture(scope='module')
def model(config: Config) -> nn.Module:
    init_default_scope('mmpretrain')
    torch.manual_seed(0)
    model = MODELS.build(dict(config.model, data_preprocessor=config.data_preprocessor))
    model.init_weights()
    return model.train()


def images(config: Config) -> dict:
    """Return a batch of the size that the config trains on, as its data loader gives it."""
    size = config.train_dataloader.batch_size
    side = 64 if config.filename.endswith('64x64.py') else 32
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 256, (size, 3, side, side), dtype=torch.uint8, generator=generator)
    samples = [DataSample().set_gt_label(i % 10) for i in range(size)]
    return dict(inputs=list(inputs), data_samples=samples)


def test_norms_are_of_the_type_and_number_that_the_name_says(file: Path, model: nn.Module) -> None:
    name, norm = file.stem.split('_')[:2]
    norms = [layer for layer in model.modules() if isinstance(layer, ANY_NORM)]
    assert Counter(map(type, norms)) == {LAYERS[norm]: NORMS[name]}
    for layer in norms:
        if isinstance(layer, nn.GroupNorm):
            assert layer.num_groups == 8
        if isinstance(layer, SwitchNorm):
            assert (layer.scopes, layer.correction) == (('in', 'ln', 'bn'), 0)


def test_step_changes_every_weight(config: Config, model: nn.Module) -> None:
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    wrapper.initialize_count_status(model, 0, 100)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    turns = config.optim_wrapper.get('accumulative_counts', 1)
    for _ in range(2 * turns):
        loss = model.train_step(images(config), wrapper)['loss']
        assert torch.isfinite(loss)
    # The last γ of a block starts at 0, so what is before it learns from the second step on.
    same = [name for name, weight in model.named_parameters() if weight.equal(before[name])]
    assert same == []


def test_it_predicts_a_class_of_each_image(config: Config, model: nn.Module) -> None:
    model.eval()
    predicted = model.val_step(images(config))
    assert len(predicted) == config.train_dataloader.batch_size
    for sample in predicted:
        assert sample.pred_score.shape == (10,)
        assert sample.pred_score.sum().item() == pytest.approx(1)
    model.train()


@pytest.mark.parametrize('file', CIFAR10, ids=lambda file: file.stem)
def test_data_are_folders_of_cifar10(file: Path) -> None:
    config = Config.fromfile(file)
    for loader, folder in (('train', 'train'), ('val', 'test'), ('test', 'test')):
        dataset = config[f'{loader}_dataloader'].dataset
        assert (dataset.type, dataset.data_root) == ('CustomDataset', 'data/cifar10/')
        assert dataset.data_prefix == folder
        # As many of each class: the folders are listed one after the other.
        images = 5000 if folder == 'train' else 1000
        counts = Counter(i // images for i in dataset.indices)
        assert len(counts) == 10
        assert len(set(counts.values())) == 1


@pytest.mark.parametrize('batch', ['1xb16', '8xb2'])
def test_baselines_differ_in_the_norm_alone(batch: str) -> None:
    folder = CONFIGS / 'classification/cifar10'
    ours, *others = (
        Config.fromfile(folder / f'resnet10_{norm}_{batch}_cifar10.py').to_dict() for norm in LAYERS
    )
    for other in others:
        assert other['model']['backbone'].pop('norm_cfg') != {'type': 'SN'}
        assert {**ours, 'model': None} == {**other, 'model': None}
        ours_backbone = {k: v for k, v in ours['model']['backbone'].items() if k != 'norm_cfg'}
        assert other['model']['backbone'] == ours_backbone


@pytest.mark.parametrize('norm', LAYERS)
def test_both_batches_see_the_same_images_and_take_the_same_steps(norm: str) -> None:
    folder = CONFIGS / 'classification/cifar10'
    one, eight = (
        Config.fromfile(folder / f'resnet10_{norm}_{batch}_cifar10.py').to_dict()
        for batch in ('1xb16', '8xb2')
    )
    assert one['train_dataloader'].pop('batch_size') == 16
    assert eight['train_dataloader'].pop('batch_size') == 2
    assert eight['optim_wrapper'].pop('accumulative_counts') == 16 // 2
    for key in ('model', 'train_dataloader', 'optim_wrapper', 'param_scheduler', 'train_cfg'):
        assert one[key] == eight[key], key


def test_the_detectors_backbone_is_the_pretrained_one() -> None:
    """All names and shapes of the backbone's weights are alike, and so is what it gets to see."""
    (file,) = CONFIGS.glob('classification/cifar10/resnet18_sn_*.py')
    classifier, detector = Config.fromfile(file), Config.fromfile(DETECTOR)
    for key in ('mean', 'std'):
        assert classifier.data_preprocessor[key] == detector.model.data_preprocessor[key]
    assert classifier.data_preprocessor.to_rgb
    assert detector.model.data_preprocessor.bgr_to_rgb
    init_default_scope('mmpretrain')
    weights = MODELS.build(classifier.model.backbone).state_dict()
    init_default_scope('mmdet')
    from mmdet.registry import MODELS as DETECTORS

    needed = DETECTORS.build(detector.model.backbone).state_dict()
    assert {k: v.shape for k, v in weights.items()} == {k: v.shape for k, v in needed.items()}
