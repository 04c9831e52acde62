"""tools/batch_average.py writes a checkpoint with the batch average, or says why it cannot."""

import re
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config

from sn_openmmlab.checkpoints.files.safe_loading import read_checkpoint

# Each batch is one image as it is, so that their order does not matter.
SINGLE = """
_base_ = '{base}'
train_dataloader = dict(
    batch_size=1,
    dataset=dict(
        pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')],
    ),
)
custom_hooks = [dict(type='EMAHook'), dict(type='BatchAverageHook')]
"""


@pytest.fixture(scope='module')
def config(classification_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the config of the tiny classifier, with hooks that matter in a training alone."""
    file = tmp_path_factory.mktemp('config') / 'single_images.py'
    file.write_text(SINGLE.format(base=classification_config))
    return file


@pytest.fixture(scope='module')
def averaged(
    repo: Path,
    config: Path,
    classification_run: Path,
    run_tool: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, str]:
    """Return the checkpoint that the tool wrote of the tiny classifier, and what it printed."""
    folder = tmp_path_factory.mktemp('averaged')
    out = folder / 'new/averaged.pth'
    checkpoint = classification_run / 'epoch_1.pth'
    tool = repo / 'tools/batch_average.py'
    done = run_tool(tool, config, checkpoint, out, '--work-dir', folder / 'work')
    return out, done.stdout


def _first_moments(state: dict, data: Path, config: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the averages over the training images of the moments of the first convolution."""
    settings = Config.fromfile(config).data_preprocessor
    images = [cv2.imread(str(file)) for file in sorted(data.glob('train/*/*.png'))]
    assert len(images) == 8
    x = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float()
    x = x.flip(1) if settings.to_rgb else x
    mean, std = (torch.tensor(settings[name]).view(3, 1, 1) for name in ('mean', 'std'))
    y = torch.nn.functional.conv2d((x - mean) / std, state['backbone.conv1.weight'], padding=1)
    var, mean = torch.var_mean(y, (2, 3), correction=0)
    return mean.mean(0), var.mean(0)


def test_statistics_are_the_averages_over_the_training_images(
    averaged: tuple[Path, str], config: Path, tiny_classes: Path
) -> None:
    state = read_checkpoint(averaged[0])['state_dict']
    mean, var = _first_moments(state, tiny_classes, config)
    torch.testing.assert_close(state['backbone.sn1.running_mean'], mean, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(state['backbone.sn1.running_var'], var, rtol=1e-4, atol=1e-4)


def test_all_else_in_the_checkpoint_stays(
    averaged: tuple[Path, str], classification_run: Path
) -> None:
    old, new = read_checkpoint(classification_run / 'epoch_1.pth'), read_checkpoint(averaged[0])
    assert old.keys() == new.keys()
    for name, value in old['state_dict'].items():
        is_set = name.endswith(('running_mean', 'running_var'))
        assert torch.equal(new['state_dict'][name], value) != is_set, name
    note = new['meta'].pop('batch_average')
    assert (note['source'], note['batches'], note['images']) == ('epoch_1.pth', 8, 8)
    assert new['meta'] == old['meta']
    torch.testing.assert_close(new['optimizer'], old['optimizer'], rtol=0, atol=0)


def test_what_it_did_is_said(averaged: tuple[Path, str]) -> None:
    file, said = averaged
    assert re.search(
        rf'^{re.escape(str(file))} has new running statistics in 11 layers, averaged over 8 '
        r'batches of each process with 8 images in all\.\n'
        r'The means moved by \d\.\d{3} standard deviations and the variances by \d+\.\d%: medians '
        r'over \d+ channels\.$',
        said,
        re.MULTILINE,
    )


@pytest.mark.slow
def test_two_processes_share_the_images_and_write_once(
    averaged: tuple[Path, str],
    repo: Path,
    config: Path,
    classification_run: Path,
    run_tool: Callable,
    tmp_path: Path,
) -> None:
    if torch.cuda.device_count() == 1:
        pytest.skip('two processes need two GPUs, and here is one')
    out = tmp_path / 'averaged.pth'
    done = run_tool(
        *('-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2'),
        *(repo / 'tools/batch_average.py', config, classification_run / 'epoch_1.pth', out),
        *('--launcher', 'pytorch', '--work-dir', tmp_path / 'work'),
    )
    assert done.stdout.count(' over 4 batches of each process with 8 images in all.') == 1
    # SN normalizes by the images of its own rank, of which each batch has one.
    torch.testing.assert_close(
        dict(read_checkpoint(out)['state_dict']),
        dict(read_checkpoint(averaged[0])['state_dict']),
        rtol=1e-4,
        atol=1e-4,
    )


def test_mistakes_are_one_sentence(
    fail: Callable, config: Path, classification_run: Path, tmp_path: Path
) -> None:
    checkpoint, out = classification_run / 'epoch_1.pth', tmp_path / 'out.pth'
    for arguments, said in (
        ((tmp_path / 'none.pth', out), f'there is no checkpoint file {tmp_path}/none.pth'),
        ((checkpoint, checkpoint), 'is read and would be overwritten'),
        ((checkpoint, out, '--num-batches', 0), '--num-batches is 0, but must be at least 1'),
        (
            (checkpoint, out, '--cfg-options', 'model.backbone.norm_cfg.norm_eval=True'),
            'or the config holds them all fixed',
        ),
    ):
        assert said in fail('batch_average.py', config, *arguments)
    assert not out.exists()


def test_a_model_without_such_layers_is_one_sentence(
    fail: Callable, config: Path, classification_run: Path, tmp_path: Path
) -> None:
    state = read_checkpoint(classification_run / 'epoch_1.pth')['state_dict']
    kept = {
        name: value
        for name, value in state.items()
        if not name.endswith(('mean_weight', 'var_weight'))
    }
    torch.save(
        dict(state_dict={n.replace('.sn', '.bn'): x for n, x in kept.items()}), tmp_path / 'bn.pth'
    )
    arguments = (config, tmp_path / 'bn.pth', tmp_path / 'out.pth', '--norm', 'BN')
    said = fail('batch_average.py', *arguments)
    assert said == (
        'error: no SN layer of the model uses running statistics: for its BatchNorm layers, add '
        '--batch-norm.\n'
    )


def test_a_sparse_model_that_chose_no_batch_statistics_is_one_sentence(
    fail: Callable, config: Path, classification_run: Path, tmp_path: Path
) -> None:
    checkpoint = read_checkpoint(classification_run / 'epoch_1.pth')
    state = checkpoint['state_dict']
    for name in [name.removesuffix('mean_weight') for name in state if 'mean_weight' in name]:
        # The first of the scopes, 'in'.
        state.update({f'{name}{kind}_choice': torch.tensor([0]) for kind in ('mean', 'var')})
    torch.save(checkpoint, tmp_path / 'sparse.pth')
    said = fail('batch_average.py', config, tmp_path / 'sparse.pth', tmp_path / 'out.pth')
    assert 'no SN layer of the model uses running statistics' in said
    assert not (tmp_path / 'out.pth').exists()
