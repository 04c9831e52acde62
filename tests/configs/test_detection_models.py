"""Every shipped detector has the norms that its name says, trains a step and predicts."""

import re
from collections import Counter
from pathlib import Path

import pytest
import torch
from mmdet.registry import MODELS
from mmdet.testing import demo_mm_inputs
from mmengine.config import Config, ConfigDict
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from torch import nn

from sn_openmmlab.layers.switch_norm import SwitchNorm

CONFIGS = Path(__file__).parents[2] / 'configs'
SHIPPED = sorted([*CONFIGS.glob('detection/*/*.py'), *CONFIGS.glob('demo/*rcnn*.py')])
LAYERS = {'sn': SwitchNorm, 'gn': nn.GroupNorm, 'bn': nn.BatchNorm2d}
ANY_NORM = (nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm)

# A ResNet has one norm after the stem, one after each convolution of its blocks (2 a block for
# 18, 3 for 50 and 101) and one in each shortcut that changes the shape (3 for 18, else 4).
STAGE_4 = 3 * 3 + 1
RESNET = {'r18': 1 + 8 * 2 + 3, 'r50': 1 + 16 * 3 + 4, 'r101': 1 + 33 * 3 + 4}
# The FPN has one lateral and one output convolution a level; without the first level, it has two
# more output convolutions instead. A 4conv1fc box head and a mask head have four, a cascade three
# of each. The heads of RetinaNet and FCOS have four for the classes and four for the boxes.
FPN = {'neck': 4 + 4}
HEADS = {
    'faster-rcnn': {**FPN, 'roi_head.bbox_head': 4},
    'mask-rcnn': {**FPN, 'roi_head.bbox_head': 4, 'roi_head.mask_head': 4},
    'cascade-mask-rcnn': {**FPN, 'roi_head.bbox_head': 3 * 4, 'roi_head.mask_head': 3 * 4},
    'retinanet': {'neck': 3 + 3 + 2, 'bbox_head': 4 + 4},
    'fcos': {'neck': 3 + 3 + 2, 'bbox_head': 4 + 4},
}
# Norm of the backbone, and norm of the rest.
ROWS = {
    'bn-frozen': ('bn', None),
    'gn-head': ('bn', 'gn'),
    'sn-head': ('bn', 'sn'),
    'gn-backbone_sn-head': ('gn', 'sn'),
    **{norm: (norm, norm) for norm in LAYERS},
    **{f'{norm}-all': (norm, norm) for norm in LAYERS},
}


class Shipped:
    """A shipped config with its model, built without pretrained weights."""

    def __init__(self, file: Path) -> None:
        self.released = file.parent.name == 'released'
        stem = file.stem.removesuffix('_finetune')
        # Names of the released ones may end in the norm.
        run = r'(?:_(.*))?' if self.released else '_(.*)'
        name = re.fullmatch(rf'([a-z-]+)_(r\d+)_(fpn|c4)_([a-z_-]*[a-z]){run}', stem)
        self.detector, self.depth, self.neck, row, self.run = name.groups(default='')
        row, scratch, _ = row.partition('_scratch')
        self.backbone_norm, self.other_norm = ROWS[row]
        self.bn_is_frozen = row in ('bn-frozen', 'gn-head', 'sn-head')
        self.from_scratch = bool(scratch) or 'scratch' in self.run or file.parent.name == 'demo'
        self.config = Config.fromfile(file)
        self.classes = 8 if 'cityscapes' in self.run else 80
        self.classes = {'bccd': 3, 'demo': 10}.get(file.parent.name, self.classes)
        self.model = self._build(self.config.model)

    def norms(self, part: str) -> list[nn.Module]:
        """Return the norm layers of a part of the model."""
        module = self.model.get_submodule(part)
        return [layer for layer in module.modules() if isinstance(layer, ANY_NORM)]

    def places(self) -> dict[str, tuple[str, int]]:
        """Return norm and number of norm layers by part of the model."""
        count = RESNET[self.depth]
        if self.neck == 'c4':
            return {
                'backbone': (self.backbone_norm, count - STAGE_4),
                'roi_head.shared_head': (self.backbone_norm, STAGE_4),
            }
        heads = HEADS[self.detector] if self.other_norm else {}
        if self.released and self.detector == 'faster-rcnn':
            # Its box head has no convolutions.
            heads = FPN
        rest = {part: (self.other_norm, number) for part, number in heads.items()}
        return {'backbone': (self.backbone_norm, count), **rest}

    def _build(self, settings: ConfigDict) -> nn.Module:
        settings.backbone.init_cfg = None
        if self.neck == 'c4':
            settings.roi_head.shared_head.init_cfg = None
        # With the usual threshold, a model that has learned nothing may find nothing.
        test = settings.test_cfg.get('rcnn', settings.test_cfg)
        test.score_thr = 0.0
        # Narrow box heads, few regions and masks, for speed.
        heads = settings.get('roi_head', {}).get('bbox_head', [])
        for head in heads if isinstance(heads, list) else [heads]:
            if 'fc_out_channels' in head:
                head.fc_out_channels = 32
        test.max_per_img = 8
        if 'rpn' in settings.test_cfg:
            settings.test_cfg.rpn.max_per_img = 16
            settings.train_cfg.rpn_proposal.max_per_img = 16
            stages = settings.train_cfg.rcnn
            for stage in stages if isinstance(stages, list) else [stages]:
                stage.sampler.num = 16
        torch.manual_seed(0)
        model = MODELS.build(settings)
        model.init_weights()
        return model.train()


@pytest.fixture(scope='module', params=SHIPPED, ids=lambda file: file.stem)
def shipped(request: pytest.FixtureRequest) -> Shipped:
    """Return each shipped config in turn."""
    init_default_scope('mmdet')
    return Shipped(request.param)


def test_norm_layers_are_of_the_type_and_number_that_the_name_says(shipped: Shipped) -> None:
    expected = {part: Counter({LAYERS[n]: count}) for part, (n, count) in shipped.places().items()}
    for part, counts in expected.items():
        assert Counter(map(type, shipped.norms(part))) == counts, part
    # Nowhere else is another one.
    assert Counter(map(type, shipped.norms(''))) == sum(expected.values(), Counter())


def test_norms_have_the_papers_settings(shipped: Shipped) -> None:
    # GN's default of 32 groups; half as many in the quickstart's network of half the width.
    groups = 16 if shipped.run == 'digits' else 32
    for layer in shipped.norms(''):
        if isinstance(layer, nn.GroupNorm):
            assert layer.num_groups == groups
        if isinstance(layer, SwitchNorm):
            assert (layer.momentum, layer.affine) == (0.1, True)


def test_variance_is_the_authors_but_in_the_networks_of_our_own(shipped: Shipped) -> None:
    layers = [layer for layer in shipped.norms('') if isinstance(layer, SwitchNorm)]
    assert all(layer.correction == int(shipped.depth != 'r18') for layer in layers)


def test_scopes_leave_out_the_batch_where_the_setting_has_none(shipped: Shipped) -> None:
    for name, layer in shipped.model.named_modules():
        if isinstance(layer, SwitchNorm):
            shared_by_levels = shipped.detector in ('retinanet', 'fcos') and 'head' in name
            without = shared_by_levels or shipped.run.startswith('8xb1')
            assert layer.scopes == (('in', 'ln') if without else ('in', 'ln', 'bn')), name


def test_fine_tuning_freezes_the_first_stage_and_scratch_nothing(shipped: Shipped) -> None:
    backbone = shipped.model.backbone
    early = {id(layer) for layer in (backbone.norm1, *backbone.layer1.modules())}
    for layer in shipped.norms(''):
        frozen = not shipped.from_scratch and id(layer) in early
        frozen |= shipped.bn_is_frozen and isinstance(layer, nn.BatchNorm2d)
        assert layer.training is not frozen
        assert {parameter.requires_grad for parameter in layer.parameters()} == {not frozen}
    convolutions = {
        name.split('.')[1]
        for name, parameter in shipped.model.named_parameters()
        if name.startswith('backbone') and name.split('.')[-2].startswith('conv')
        if not parameter.requires_grad
    }
    assert convolutions == (set() if shipped.from_scratch else {'conv1', 'layer1'})


def test_residual_branches_from_scratch_start_at_full_strength(shipped: Shipped) -> None:
    if 'scratch' in shipped.run:
        last = [block.norm3 for block in shipped.model.backbone.layer3]
        assert all((layer.weight == 1).all() for layer in last)


def test_weights_decay_but_norms_do_not(shipped: Shipped) -> None:
    wrapper = build_optim_wrapper(shipped.model, shipped.config.optim_wrapper)
    groups = {
        id(parameter): group
        for group in wrapper.optimizer.param_groups
        for parameter in group['params']
    }
    rate = shipped.config.optim_wrapper.optimizer.lr
    seen = Counter()
    for layer in shipped.model.modules():
        for name, parameter in layer.named_parameters(recurse=False):
            if not parameter.requires_grad:
                continue
            group = groups[id(parameter)]
            if isinstance(layer, ANY_NORM):
                assert group['weight_decay'] == 0, name
                assert group['lr'] == rate
                seen[name] += 1
            elif isinstance(layer, nn.Conv2d | nn.Linear) and name == 'weight':
                assert group['weight_decay'] == 1e-4
                assert group['lr'] == rate
                seen['convolutions'] += 1
    assert seen['convolutions'] > 20
    assert seen['weight'] == seen['bias']
    assert bool(seen['weight']) == (
        shipped.other_norm is not None and not (shipped.neck == 'c4' and shipped.bn_is_frozen)
    )
    mixed = sum(isinstance(layer, SwitchNorm) for layer in shipped.norms('') if layer.training)
    assert seen['mean_weight'] == seen['var_weight'] == mixed


def test_a_step_learns_and_a_prediction_is_finite(shipped: Shipped) -> None:
    model = shipped.model
    masks = 'mask' in shipped.detector
    batch = demo_mm_inputs(
        2, (3, 64, 96), num_items=[2, 1], num_classes=shipped.classes, with_mask=masks
    )
    wrapper = build_optim_wrapper(model, shipped.config.optim_wrapper)
    before = {name: value.clone() for name, value in model.named_parameters()}
    losses = model.train().train_step(batch, wrapper)
    assert any('cls' in name for name in losses)
    assert any('bbox' in name for name in losses)
    assert any('mask' in name for name in losses) == masks
    assert all(torch.isfinite(torch.as_tensor(loss)) for loss in losses.values())
    assert losses['loss'] > 0
    for name, value in model.named_parameters():
        assert torch.isfinite(value).all(), name
        if not value.requires_grad:
            assert torch.equal(value, before[name]), name
    moved = {name for name, value in model.named_parameters() if not value.equal(before[name])}
    for part, (norm, _) in shipped.places().items():
        learning = {name.rsplit('.', 1)[1] for name in moved if name.startswith(part)}
        if norm == 'sn':
            assert {'mean_weight', 'var_weight', 'weight', 'bias'} <= learning, part

    with torch.no_grad():
        results = model.eval().test_step(batch)
    model.train()
    assert len(results) == 2
    for result in results:
        found = result.pred_instances
        assert 0 < len(found) <= 8
        assert torch.isfinite(found.bboxes).all()
        assert ((found.scores >= 0) & (found.scores <= 1)).all()
        assert ((found.labels >= 0) & (found.labels < shipped.classes)).all()
        if masks:
            assert found.masks.shape == (len(found), *result.ori_shape[:2])
