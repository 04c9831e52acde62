"""A segmenter built with BatchNorm trains with SN by --convert-norms, then without it."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

import sn_openmmlab  # noqa: F401  # allows what checkpoints of mmengine hold

# Under inheritance the norm_cfg at the top reaches no part.
CHILD = """
_base_ = '{base}'
norm_cfg = dict(type='SN', correction=1)
model = dict(backbone=dict(norm_cfg=dict(type='BN')), decode_head=dict(norm_cfg=dict(type='BN')))
"""


@pytest.fixture(scope='module')
def child(segmentation_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a config whose parts have BatchNorm, and SN in the norm_cfg at its top."""
    file = tmp_path_factory.mktemp('child') / 'child.py'
    file.write_text(CHILD.format(base=segmentation_config))
    return file


@pytest.fixture(scope='module')
def converted_run(
    repo: Path, child: Path, run_tool: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the work folder of an epoch with --convert-norms, norm_eval and accumulation."""
    work_dir = tmp_path_factory.mktemp('converted_run')
    run_tool(
        *(repo / 'tools/train.py', child, '--work-dir', work_dir, '--convert-norms'),
        *('--cfg-options', 'model.backbone.norm_eval=True', 'optim_wrapper.accumulative_counts=2'),
    )
    return work_dir


def read_log(work_dir: Path) -> str:
    """Return the log of the only run in a work folder."""
    (log,) = work_dir.glob('*/*.log')
    return log.read_text()


def test_every_batch_norm_became_sn(converted_run: Path) -> None:
    # ResNet-18 has a norm in its stem, two in each of eight blocks and three on its shortcuts; the
    # head has one for its convolution and one where it joins the input.
    assert 'SN in 22 layers (backbone 20, decode_head 2); no other norms.' in read_log(
        converted_run
    )
    weights = torch.load(converted_run / 'epoch_1.pth', weights_only=True)['state_dict']
    controls = [name for name in weights if name.endswith('.mean_weight')]
    assert len(controls) == 22
    assert 'backbone.bn1.mean_weight' in controls
    for layer in ('backbone.bn1', 'decode_head.convs.0.bn'):
        assert not weights[f'{layer}.mean_weight'].equal(torch.ones(3))


def test_settings_that_do_not_act_on_sn_are_warned_of(converted_run: Path) -> None:
    log = read_log(converted_run)
    assert log.count('WARNING - backbone has norm_eval=True, which acts on BatchNorm only') == 1
    assert log.count('WARNING - accumulative_counts=2 adds up the gradients of 2 batches') == 1


def test_dumped_config_needs_no_option(
    repo: Path,
    converted_run: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    dumped = converted_run / 'child.py'
    train = Path(find_spec('mmseg').origin).parent / '.mim/tools/train.py'
    run_tool(train, dumped, '--work-dir', tmp_path / 'mmseg')
    losses, metrics = logged(converted_run)
    assert logged(tmp_path / 'mmseg') == (losses, metrics)

    checkpoint = converted_run / 'epoch_1.pth'
    run_tool(repo / 'tools/test.py', dumped, checkpoint, '--work-dir', tmp_path / 'test')
    assert tested(tmp_path / 'test') == metrics[-1]
    assert 'SN in 22 layers' in read_log(tmp_path / 'test')

    done = run_tool(repo / 'tools/report.py', dumped, '--work-dir', converted_run)
    assert 'SN in 22 layers' in done.stdout + done.stderr
    table = (converted_run / 'report/importance_ratios.csv').read_text()
    assert table.count('\nbackbone.bn1,') == 3
