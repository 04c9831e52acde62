"""tools/check_data.py lists the files that cannot be read, and tools/train.py stops or skips."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broken_data import TOOLBOXES, break_data


@pytest.mark.parametrize('toolbox', TOOLBOXES)
def test_training_stops_at_a_file_that_ends_early(
    toolbox: str, request: pytest.FixtureRequest, fail: Callable, tmp_path: Path
) -> None:
    config, image = break_data(toolbox, request, tmp_path)
    # In the process of the training, and in one of its loader.
    workers = 1 if toolbox == 'detection' else 0
    said = fail(
        'train.py',
        config,
        *('--work-dir', tmp_path / 'run'),
        *('--cfg-options', f'train_dataloader.num_workers={workers}'),
    )
    assert said.startswith(f'error: {image} cannot be decoded: it ends early, is damaged')
    # The written config is one for the toolbox's own tools.
    (written,) = (tmp_path / 'run').glob('*.py')
    assert 'CheckedLoading' not in written.read_text()


@pytest.mark.parametrize('toolbox', TOOLBOXES)
def test_training_skips_the_file_on_request(
    toolbox: str, request: pytest.FixtureRequest, run_tool: Callable, repo: Path, tmp_path: Path
) -> None:
    config, image = break_data(toolbox, request, tmp_path)
    work_dir = tmp_path / 'run'
    run_tool(
        *(repo / 'tools/train.py', config, '--work-dir', work_dir, '--bad-images', 'skip'),
        *('--cfg-options', 'train_dataloader.num_workers=1', 'train_cfg.val_begin=9'),
    )
    assert (work_dir / 'epoch_1.pth').is_file()
    (log,) = work_dir.glob('*/*.log')
    assert f'{image} cannot be decoded' in log.read_text()
    assert 'another image takes its place' in log.read_text()
    (scalars,) = work_dir.glob('*/vis_data/scalars.json')
    assert any('loss' in json.loads(line) for line in scalars.read_text().splitlines())


def test_check_lists_the_files(
    request: pytest.FixtureRequest,
    fail: Callable,
    run_tool: Callable,
    repo: Path,
    detection_config: Path,
    tmp_path: Path,
) -> None:
    config, image = break_data('detection', request, tmp_path)
    tool = repo / 'tools/check_data.py'
    done = run_tool(tool, config, '--decode', code=2)
    assert f'{image} cannot be decoded: it ends early, is damaged or is no image.' in done.stdout
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith('error: 1 of 12 files cannot be used; they are listed above.')
    assert 'Traceback' not in done.stderr
    done = run_tool(tool, detection_config, '--decode')
    assert done.stdout.splitlines()[-1] == 'All 12 files can be read.'
    assert 'The data are complete' in run_tool(tool, config).stdout
    image.unlink()
    assert f'the first is {image}' in fail('check_data.py', config)
