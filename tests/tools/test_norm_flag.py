"""A segmenter with BatchNorm trains with SN by --norm, and by the config that --dump writes."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

import sn_openmmlab  # noqa: F401  # allows what checkpoints of mmengine hold
from tests.resumed import EXACT_RESUME

CHILD = """
_base_ = '{base}'
norm_cfg = dict(type='BN', requires_grad=False)
model = dict(backbone=dict(norm_cfg=dict(norm_cfg, _delete_=True), norm_eval=True))
model.update(decode_head=dict(norm_cfg=dict(type='GN', num_groups=4, _delete_=True)))
"""
NORM = "dict(type='SN', scopes=('ln', 'bn'))"


@pytest.fixture(scope='module')
def child(segmentation_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a config whose backbone has frozen BatchNorm, and its head GroupNorm."""
    file = tmp_path_factory.mktemp('child') / 'child.py'
    file.write_text(CHILD.format(base=segmentation_config))
    return file


@pytest.fixture(scope='module')
def start(
    repo: Path, child: Path, run_tool: Callable, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a checkpoint that the config has trained with its own norms."""
    work_dir = tmp_path_factory.mktemp('own_norms')
    run_tool(repo / 'tools/train.py', child, '--work-dir', work_dir)
    return work_dir / 'epoch_1.pth'


@pytest.fixture(scope='module')
def flag_run(
    repo: Path,
    child: Path,
    start: Path,
    run_tool: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return the work folder of an epoch with --norm, from the weights with the other norms."""
    work_dir = tmp_path_factory.mktemp('flag_run')
    run_tool(
        *(repo / 'tools/train.py', child, '--work-dir', work_dir, '--norm', NORM),
        *('--cfg-options', f'load_from={start}', 'optim_wrapper.accumulative_counts=2'),
    )
    return work_dir


def read_log(work_dir: Path) -> str:
    """Return the log of the only run in a work folder."""
    (log,) = work_dir.glob('*/*.log')
    return log.read_text()


def test_every_norm_became_sn_and_a_table_says_so(flag_run: Path) -> None:
    # ResNet-18 has a norm in its stem, two in each of eight blocks and three on its shortcuts; the
    # head has one for its convolution and one where it joins the input.
    log = read_log(flag_run)
    assert 'SN in 22 layers (backbone 20, decode_head 2); no other norms.' in log
    rows = [line.split() for line in log.split('\n')]
    assert ['backbone', 'BN', '20', 'SN'] in rows
    assert ['decode_head', 'GN', '2', 'SN'] in rows
    assert log.index('decode_head   GN') < log.index('Epoch(train)')
    weights = torch.load(flag_run / 'epoch_1.pth', weights_only=True)['state_dict']
    controls = [name for name in weights if name.endswith('.mean_weight')]
    assert len(controls) == 22
    assert all(weights[name].shape == (2,) for name in controls)


def test_weights_were_converted_and_train(flag_run: Path, start: Path) -> None:
    log = read_log(flag_run)
    assert f'Load checkpoint from {start}' in log
    weights = torch.load(flag_run / 'epoch_1.pth', weights_only=True)['state_dict']
    controls = [w for name, w in weights.items() if name.endswith('bn1.mean_weight')]
    # The learning rate is small; all started at 0.9.
    assert all(w.softmax(0)[1].item() == pytest.approx(0.9, abs=0.02) for w in controls)
    assert len({w[1].item() for w in controls}) > 1
    before = torch.load(start, weights_only=True)['state_dict']
    name = 'backbone.layer4.1.bn2.weight'
    assert 0 < (weights[name] - before[name]).abs().max() < 0.1


def test_settings_that_act_on_batch_norm_are_handled(flag_run: Path) -> None:
    log = read_log(flag_run)
    assert 'has norm_eval=True' not in log
    assert log.count('WARNING - accumulative_counts=2 adds up the gradients of 2 batches') == 1


def test_dumped_config_is_trained_by_the_toolbox_and_needs_no_option(
    repo: Path,
    child: Path,
    start: Path,
    flag_run: Path,
    run_tool: Callable,
    logged: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    dumped = tmp_path / 'dumped.py'
    done = run_tool(
        *(repo / 'tools/train.py', child, '--norm', NORM, '--dump', dumped),
        *('--cfg-options', f'load_from={start}', 'optim_wrapper.accumulative_counts=2'),
        *('--work-dir', tmp_path / 'named'),
    )
    assert Config.fromfile(dumped).work_dir == str(tmp_path / 'named')
    assert ['decode_head', 'GN', '2', 'SN'] in [line.split() for line in done.stdout.split('\n')]
    train = Path(find_spec('mmseg').origin).parent / '.mim/tools/train.py'
    run_tool(train, dumped, '--work-dir', tmp_path / 'mmseg', *EXACT_RESUME)
    losses, metrics = logged(flag_run)
    assert logged(tmp_path / 'mmseg') == (losses, metrics)

    checkpoint = flag_run / 'epoch_1.pth'
    for number, config in enumerate(([child, checkpoint, '--norm', NORM], [dumped, checkpoint])):
        run_tool(repo / 'tools/test.py', *config, '--work-dir', tmp_path / f'test{number}')
        assert tested(tmp_path / f'test{number}') == metrics[-1]

    done = run_tool(repo / 'tools/report.py', dumped, '--work-dir', flag_run)
    assert 'SN in 22 layers' in done.stdout + done.stderr
    table = (flag_run / 'report/importance_ratios.csv').read_text()
    assert table.count(',backbone.bn1,') == 2


@pytest.mark.parametrize(
    ('options', 'sentence'),
    [
        (['--norm', ''], '--norm takes a name or a dict with a type, not '),
        (['--norm', 'LN'], "'LN' is no norm that can take the place of others"),
        (['--norm', 'dict('], '--norm takes a name or a dict with a type, not dict('),
        (['--norm-in', 'neck'], '--norm-in needs the norm: add --norm SN.'),
        (['--norm', 'SN', '--norm-in', 'neck'], 'EncoderDecoder has no norm layers in neck'),
        (['--norm', 'dict(type="GN", num_groups=24)'], 'GN cannot take the place of '),
        (['--norm', 'dict(type="GN", num_groups=0)'], 'GN cannot take the place of '),
        (['--norm', 'dict(type="SN", num_ratio_groups=24)'], 'do not split into 24 equal groups'),
    ],
)
def test_mistake_is_one_sentence(
    options: list[str], sentence: str, repo: Path, child: Path, fail: Callable, tmp_path: Path
) -> None:
    tool = repo / 'tools/train.py'
    said = fail(tool, child, *options, '--dump', tmp_path / 'out/dumped.py')
    assert sentence in said
    assert not (tmp_path / 'out').exists()
