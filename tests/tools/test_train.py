"""tools/train.py trains, resumes, runs in several processes, and says what is wrong."""

import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest
import torch

import sn_openmmlab  # noqa: F401  # allows what checkpoints of mmengine hold


class Payload:
    """Unpickles to a file of the given name."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple:
        return os.system, (f'touch {quote(str(self.marker))}',)


def test_training_writes_weights_and_log(detection_run: Path, logged: Callable) -> None:
    checkpoint = torch.load(detection_run / 'epoch_1.pth', weights_only=True)
    assert (checkpoint['meta']['epoch'], checkpoint['meta']['iter']) == (1, 4)
    weights = checkpoint['state_dict']
    assert weights['backbone.sn1.mean_weight'].shape == (3,)
    assert weights['neck.fpn_convs.0.sn.running_var'].shape == (32,)
    assert weights['roi_head.bbox_head.shared_convs.3.sn.num_batches_tracked'] == 4
    assert not torch.equal(weights['backbone.sn1.var_weight'], torch.ones(3))
    losses, metrics = logged(detection_run)
    assert len(losses) == 4
    assert all(math.isfinite(value) for step in losses for value in step.values())
    assert [set(step) >= {'coco/bbox_mAP', 'coco/AR@100'} for step in metrics] == [True]
    (log,) = detection_run.glob('*/*.log')
    assert 'Saving checkpoint at 1 epochs' in log.read_text()
    assert (detection_run / 'tiny_detection.py').is_file()


def test_training_continues_from_the_newest_and_from_a_named_checkpoint(
    repo: Path,
    detection_config: Path,
    detection_run: Path,
    run_tool: Callable,
    logged: Callable,
    tmp_path: Path,
) -> None:
    newest, named = tmp_path / 'newest', tmp_path / 'named'
    shutil.copytree(detection_run, newest)
    first = detection_run / 'epoch_1.pth'
    for work_dir, resume in ((newest, []), (named, [first])):
        run_tool(
            repo / 'tools/train.py',
            detection_config,
            '--work-dir',
            work_dir,
            '--cfg-options',
            'train_cfg.max_epochs=2',
            '--resume',
            *resume,
        )
        checkpoint = torch.load(work_dir / 'epoch_2.pth', weights_only=True)
        assert (checkpoint['meta']['epoch'], checkpoint['meta']['iter']) == (2, 8)
        before = torch.load(first, weights_only=True)
        history, old_history = (
            part['message_hub']['log_scalars']['train/loss'].data[0]
            for part in (checkpoint, before)
        )
        assert len(history) == 8
        assert history[:4] == pytest.approx(old_history)
        tracked = 'backbone.sn1.num_batches_tracked'
        assert checkpoint['state_dict'][tracked] == 8
        # The schedule went on too: its milestone is the end of the first epoch.
        assert checkpoint['optimizer']['param_groups'][0]['lr'] == pytest.approx(0.001)
        assert len(logged(work_dir)[0]) == 4
    assert logged(newest)[0] == logged(named)[0]


def test_two_processes_train_together(
    repo: Path, detection_config: Path, run_tool: Callable, logged: Callable, tmp_path: Path
) -> None:
    if torch.cuda.device_count() == 1:
        pytest.skip('two processes need two GPUs, and here is one')
    run_tool(
        '-m',
        'torch.distributed.run',
        '--standalone',
        '--nproc_per_node=2',
        repo / 'tools/train.py',
        detection_config,
        '--launcher',
        'pytorch',
        '--work-dir',
        tmp_path,
    )
    checkpoint = torch.load(tmp_path / 'epoch_1.pth', weights_only=True)
    # Eight images, two per process and step.
    assert (checkpoint['meta']['epoch'], checkpoint['meta']['iter']) == (1, 2)
    assert not [name for name in checkpoint['state_dict'] if name.startswith('module.')]
    assert not checkpoint['state_dict']['backbone.sn1.mean_weight'].equal(torch.ones(3))
    losses, metrics = logged(tmp_path)
    assert (len(losses), len(metrics)) == (2, 1)
    (log,) = tmp_path.glob('*/*.log')
    assert 'GPU number: 2' in log.read_text()


def test_damaged_and_malicious_checkpoints_are_one_sentence(
    repo: Path,
    detection_config: Path,
    detection_run: Path,
    run_tool: Callable,
    sentence: Callable,
    tmp_path: Path,
) -> None:
    cut = tmp_path / 'cut.pth'
    whole = (detection_run / 'epoch_1.pth').read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    done = run_tool(
        repo / 'tools/train.py',
        detection_config,
        '--work-dir',
        tmp_path / 'cut',
        f'--resume={cut}',
        code=2,
    )
    assert f'{cut} is not a checkpoint, or is damaged or cut short' in sentence(done.stderr)

    marker, malicious = tmp_path / 'marker', tmp_path / 'malicious.pth'
    torch.save({'state_dict': {}, 'meta': Payload(marker)}, malicious)
    done = run_tool(
        repo / 'tools/train.py',
        detection_config,
        '--work-dir',
        tmp_path / 'malicious',
        '--cfg-options',
        f'load_from={malicious}',
        code=2,
    )
    assert f'{malicious} was not loaded: it holds ' in sentence(done.stderr)
    assert not marker.exists()


def test_faults_are_one_sentence(
    detection_config: Path, fail: Callable, write_config: Callable, tmp_path: Path
) -> None:
    absent = tmp_path / 'absent'
    assert f'there is no config file {absent}.py' in fail('train.py', f'{absent}.py')
    assert 'cannot be read as a config' in fail('train.py', write_config('model = dict('))
    assert 'must name its toolbox' in fail('train.py', write_config('model = dict()'))

    said = fail('train.py', detection_config, '--resume', f'{absent}.pth')
    assert f'there is no checkpoint file {absent}.pth' in said
    said = fail('train.py', detection_config, '--cfg-options', f'load_from={absent}.pth')
    assert f'starts from {absent}.pth, which does not exist' in said

    said = fail(
        'train.py', detection_config, '--auto-scale-lr', '--cfg-options', 'auto_scale_lr=None'
    )
    assert 'base_batch_size' in said
    assert '--nproc_per_node' in fail('train.py', detection_config, '--launcher', 'pytorch')
    # Nothing was begun.
    assert sorted(path.name for path in tmp_path.iterdir()) == ['written_config.py']


def test_loss_that_is_not_finite_is_one_sentence(
    classification_config: Path, fail: Callable, tmp_path: Path
) -> None:
    said = fail(
        'train.py',
        classification_config,
        *('--work-dir', tmp_path / 'run'),
        *('--cfg-options', 'optim_wrapper.optimizer.lr=1e30'),
        *('default_hooks.guard.type=NonFiniteGuardHook', 'default_hooks.guard.max_skips=0'),
    )
    assert said.startswith('error: the training stops at iteration 2, since the loss')
    assert '/train/' in said and f'{tmp_path / "run"} has no good checkpoint' in said


@pytest.mark.parametrize('tool', ['train.py', 'test.py'])
def test_missing_data_is_one_sentence(
    tool: str, repo: Path, fail: Callable, tmp_path: Path
) -> None:
    (tmp_path / 'weights.pth').touch()
    for folder, name in (('demo', 'demo'), ('detection/bccd', 'bccd')):
        for config in (repo / 'configs' / folder).glob('*.py'):
            said = fail(tool, config, *(['weights.pth'] if tool == 'test.py' else []))
            assert f' reads data/{name}/' in said
            assert ', which does not exist: put or link the data there' in said


def test_missing_pretrained_weights_are_one_sentence(repo: Path, fail: Callable) -> None:
    config = repo / 'configs/detection/faster_rcnn/faster-rcnn_r50_fpn_sn-all_1x_coco.py'
    for resume in ([], ['--resume']):
        said = fail('train.py', config, *resume)
        assert 'starts model.backbone from checkpoints/resnet50_sn.pth, which does not' in said
    config = repo / 'configs/detection/mask_rcnn/mask-rcnn_r50_fpn_sn-all_4xb2-1x_cityscapes.py'
    assert 'starts from work_dirs/mask-rcnn_r50_fpn_sn-all_2x_coco' in fail('train.py', config)


@pytest.mark.parametrize('tool', ['train.py', 'test.py', 'report.py'])
def test_toolbox_that_is_not_installed_is_one_sentence(
    tool: str, fail: Callable, write_config: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__('sys').modules, 'mmpretrain', None)
    config = write_config("default_scope = 'mmpretrain'\nmodel = dict(type='ImageClassifier')\n")
    said = fail(tool, config, *(['weights.pth'] if tool == 'test.py' else []))
    assert 'a config of mmpretrain, which is not installed here' in said


@pytest.mark.skipif(torch.cuda.is_available(), reason='there is a GPU')
def test_mixed_precision_without_a_gpu_is_one_sentence(
    detection_config: Path, fail: Callable
) -> None:
    assert '--amp needs a GPU' in fail('train.py', detection_config, '--amp')
