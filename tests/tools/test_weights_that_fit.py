"""The tools refuse weights that do not fit before they start, and say what to do instead."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint


@pytest.fixture(scope='module')
def batch_norm_run(detection_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint that the same training with BatchNorm would write."""
    checkpoint = read_checkpoint(detection_run / 'epoch_1.pth')
    checkpoint['state_dict'] = {
        name.replace('.sn', '.bn'): value
        for name, value in checkpoint['state_dict'].items()
        if not name.endswith(('mean_weight', 'var_weight'))
    }
    file = tmp_path_factory.mktemp('bn') / 'epoch_1.pth'
    torch.save(checkpoint, file)
    return file


@pytest.fixture
def refuse(detection_config: Path, fail: Callable, tmp_path: Path) -> Callable[..., str]:
    """A function that runs a tool, which must end with one sentence, and returns the sentence."""

    def run(tool: str, *args: object, work_dir: Path = tmp_path / 'work') -> str:
        said = fail(tool, detection_config, '--work-dir', work_dir, *args)
        # Nothing was trained, tested or written.
        assert not list(work_dir.rglob('scalars.json')) or tool == 'report.py'
        assert not (work_dir / 'report').exists()
        return said

    return run


def test_training_does_not_start_from_batch_norm(batch_norm_run: Path, refuse: Callable) -> None:
    said = refuse('train.py', '--cfg-options', f'load_from={batch_norm_run}')
    assert f'{batch_norm_run} cannot start the model: it holds BatchNorm where the model' in said
    init = f"model.init_cfg=dict(type='SNPretrained', checkpoint='{batch_norm_run}')"
    assert f'write {init} in place of load_from' in said


def test_training_is_not_resumed_from_batch_norm(batch_norm_run: Path, refuse: Callable) -> None:
    said = refuse('train.py', '--resume', batch_norm_run)
    assert f'{batch_norm_run} cannot be continued by this config: it holds BatchNorm' in said


def test_part_without_a_checkpoint_is_one_sentence(
    detection_config: Path, fail: Callable, write_config: Callable
) -> None:
    init = "init_cfg=dict(_delete_=True, type='SNPretrained')"
    config = write_config(f"_base_ = '{detection_config}'\nmodel = dict(backbone=dict({init}))\n")
    said = fail('train.py', config)
    assert 'model.backbone.init_cfg has no checkpoint: name the file to start from' in said


SCOPES = [
    f'model.{part}.norm_cfg.scopes=[bn,in,ln]'
    for part in ('backbone', 'neck', 'roi_head.bbox_head')
]


def test_other_scopes_are_not_evaluated(detection_run: Path, refuse: Callable) -> None:
    said = refuse('test.py', detection_run / 'epoch_1.pth', '--cfg-options', *SCOPES)
    assert "backbone.sn1 was trained with scopes=('in', 'ln', 'bn'), but is built with sco" in said


@pytest.mark.parametrize('known', ['layers', 'config'])
def test_report_refuses_ratios_of_other_scopes(
    known: str, detection_run: Path, refuse: Callable, tmp_path: Path
) -> None:
    work_dir = tmp_path / 'run'
    shutil.copytree(detection_run, work_dir)
    (work_dir / 'last_checkpoint').write_text(str(work_dir / 'epoch_1.pth'))
    if known == 'config':
        checkpoint = read_checkpoint(work_dir / 'epoch_1.pth')
        checkpoint['state_dict'] = dict(checkpoint['state_dict'])
        torch.save(checkpoint, work_dir / 'epoch_1.pth')
    said = refuse('report.py', '--cfg-options', *SCOPES, work_dir=work_dir)
    assert 'epoch_1.pth cannot be evaluated by this config: the SN layer backbone.sn1 was' in said


def test_training_on_other_classes_starts_and_says_what_starts_anew(
    repo: Path, detection_config: Path, detection_run: Path, run_tool: Callable, tmp_path: Path
) -> None:
    start = detection_run / 'epoch_1.pth'
    # The data has only two classes, so there is nothing to validate.
    options = (
        f'load_from={start}',
        'model.roi_head.bbox_head.num_classes=4',
        'train_cfg.val_begin=2',
    )
    train = (repo / 'tools/train.py', detection_config, '--work-dir', tmp_path)
    # There is nothing to resume: it starts as the config says.
    done = run_tool(*train, '--resume', '--cfg-options', *options)
    anew = f'{tmp_path} has no checkpoint: the training starts anew, from {start}'
    assert anew in done.stdout
    (log,) = tmp_path.glob('*/*.log')
    fills = 'it fills 32 of 32 SN layers and 36 of 38 convolutions and linear layers'
    lacks = (
        'not roi_head.bbox_head.fc_cls (another shape), roi_head.bbox_head.fc_reg (another shape)'
    )
    assert f'{start} starts the model: {fills}; {lacks}.' in log.read_text()
    assert (tmp_path / 'epoch_1.pth').is_file()
