"""Exported models of the toolboxes predict as the sparse models do."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from sn_openmmlab import SwitchNorm, sparsify
from sn_openmmlab.errors import UsageError
from sn_openmmlab.inference.export import export as module
from sn_openmmlab.inference.export.export import check_export_output, export, write_export
from sn_openmmlab.inference.export.trial import predict
from sn_openmmlab.inference.trained_model import model_config
from sn_openmmlab.runs.config import read_config
from sn_openmmlab.runs.norm_swap import replace_norms
from tests.segmenter import FCN
from tests.sparse_models import spread


def build(config: Config, mixed: bool = False) -> nn.Module:
    with DefaultScope.overwrite_default_scope(config.default_scope):
        return sparsify(spread(MODELS.build(model_config(config)), mixed)).eval()


def exported_model(model: nn.Module, config: Config, folder: Path) -> nn.Module:
    """Export and write a model, and build it from the written files."""
    made = export(model, config)
    write_export(made, {}, 'trained.pth', folder / 'out.pth')
    written = Config.fromfile(folder / 'out.py')
    with DefaultScope.overwrite_default_scope(config.default_scope):
        built = MODELS.build(written.model)
    built.load_state_dict(torch.load(folder / 'out.pth', weights_only=True)['state_dict'])
    return built.eval()


def check_predictions(expected: nn.Module, found: nn.Module, scope: str) -> None:
    expected, found = (predict(model, scope)[0] for model in (expected, found))
    if scope == 'mmdet':
        expected, found = (sample.pred_instances for sample in (expected, found))
        assert len(expected) == 100
        torch.testing.assert_close(found.scores, expected.scores, rtol=1e-4, atol=1e-4)
        # Of boxes with nearly equal scores, either may come first.
        exact = dict(compute_mode='donot_use_mm_for_euclid_dist')
        distances = torch.cdist(expected.bboxes, found.bboxes, **exact).min(1).values
        assert (distances < 0.01).float().mean() > 0.95
        return
    expected, found = (
        sample.seg_logits.data if scope == 'mmseg' else sample.pred_score
        for sample in (expected, found)
    )
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('mixed', [False, True])
@pytest.mark.parametrize('kind', ['detection', 'segmentation', 'classification'])
def test_predictions_are_equal(
    kind: str, mixed: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    config = read_config(request.getfixturevalue(f'{kind}_config'))
    torch.manual_seed(0)
    model = build(config, mixed)

    built = exported_model(model, config, tmp_path)

    check_predictions(model, built, config.default_scope)
    stays = sum(isinstance(layer, SwitchNorm) for layer in built.modules())
    assert bool(stays) == mixed
    assert any(isinstance(layer, nn.Identity) for layer in built.modules()), 'nothing was folded'
    assert ('sn_openmmlab' in Config.fromfile(tmp_path / 'out.py').custom_imports.imports) == mixed


def test_model_whose_norms_were_replaced(tmp_path: Path) -> None:
    pytest.importorskip('mmseg')
    pixels = dict(type='SegDataPreProcessor', mean=[0.0] * 3, std=[9.0] * 3)
    config = Config(
        dict(
            default_scope='mmseg',
            model=dict(FCN, data_preprocessor=pixels, test_cfg=dict(mode='whole')),
        )
    )
    replace_norms(config, 'SN')
    model = build(config)

    built = exported_model(model, config, tmp_path)

    written = Config.fromfile(tmp_path / 'out.py')
    assert written.model.of == 'EncoderDecoder' and written.custom_hooks == []
    check_predictions(model, built, 'mmseg')


def test_nothing_is_exported_that_differs(
    classification_config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read_config(classification_config)
    model = build(config)
    right = module._state

    def wrong(*args: object) -> dict:
        state = right(*args)
        name = next(name for name in state if name.endswith('sn2.bias'))
        return {**state, name: state[name] + 1}

    monkeypatch.setattr(module, '_state', wrong)
    with pytest.raises(UsageError, match='the exported model differs by'):
        export(model, config)


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
@pytest.mark.parametrize('number', [0, -1])
def test_damaged_weights_are_not_exported(
    number: int, value: float, classification_config: Path
) -> None:
    config = read_config(classification_config)
    model = build(config)
    convs = [layer for layer in model.backbone.modules() if isinstance(layer, nn.Conv2d)]
    convs[number].weight.data.fill_(value)

    with pytest.raises(UsageError, match='not finite'):
        export(model, config)


def test_no_difference_is_lost_beside_another() -> None:
    one, nan = torch.ones(2), torch.tensor([1.0, float('nan')])
    for pairs in ([(one, one), (one, nan)], [(one, nan), (one, one)]):
        assert not module._largest_difference(pairs) <= module.TOLERANCE


def test_the_folder_may_have_any_usual_name(classification_config: Path, tmp_path: Path) -> None:
    config = read_config(classification_config)
    model = build(config)
    folder = tmp_path / "it's {{ here }} \\new #1"
    folder.mkdir()
    check_predictions(model, exported_model(model, config, folder), config.default_scope)


def test_files_beside_the_export_hide_no_package(
    classification_config: Path, tmp_path: Path
) -> None:
    (tmp_path / 'colorsys.py').write_text('')
    config = read_config(classification_config)
    exported_model(build(config), config, tmp_path)
    assert str(tmp_path) in sys.path
    assert Path(find_spec('colorsys').origin).parent == Path(os.__file__).parent


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'must name a \.pth file'):
        check_export_output(tmp_path / 'out.onnx', [])


@pytest.mark.parametrize('name', ['exported_norms.py', 'out.py'])
def test_files_of_others_are_kept(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('print()')
    with pytest.raises(UsageError, match='was not written by this tool'):
        check_export_output(tmp_path / 'out.pth', [])


def test_own_files_are_written_again(classification_config: Path, tmp_path: Path) -> None:
    config = read_config(classification_config)
    exported_model(build(config), config, tmp_path)
    check_export_output(tmp_path / 'out.pth', [])
