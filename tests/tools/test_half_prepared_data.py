"""The tools say in one sentence what is missing in a data folder, and write nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

TOOLS = ['train.py', 'test.py', 'report.py']


@pytest.fixture
def say(fail: Callable, tmp_path: Path) -> Callable[[str, Path, Path], str]:
    """Return a function that runs a tool on a config with other data; it returns the sentence."""

    def run(tool: str, config: Path, data: Path) -> str:
        own = tmp_path / 'own_config.py'
        own.write_text(config.read_text().replace(str(config_data(config)), str(data)))
        work_dir = tmp_path / 'work'
        arguments = [own, '--work-dir', work_dir]
        if tool == 'test.py':
            (tmp_path / 'weights.pth').touch()
            arguments.insert(1, tmp_path / 'weights.pth')
        if tool == 'report.py':
            run_folder = work_dir / '20260101_000000' / 'vis_data'
            run_folder.mkdir(parents=True)
            (run_folder / 'scalars.json').write_text('')
            (work_dir / 'epoch_1.pth').touch()
            (work_dir / 'last_checkpoint').write_text(str(work_dir / 'epoch_1.pth'))
        said = fail(tool, *arguments)
        assert not (work_dir / 'report' if tool == 'report.py' else work_dir).exists()
        assert not (tmp_path / 'work_dirs').exists()
        return said

    return run


def config_data(config: Path) -> Path:
    """Return the folder of the data of one of the tests' configs."""
    line = next(line for line in config.read_text().splitlines() if 'data_root=' in line)
    return Path(line.split("'")[1].rstrip('/'))


@pytest.mark.parametrize('tool', TOOLS)
def test_missing_label_maps(
    tool: str, segmentation_config: Path, tiny_maps: Path, say: Callable, tmp_path: Path
) -> None:
    data = tmp_path / 'data'
    shutil.copytree(tiny_maps, data)
    split, count = ('train', 4) if tool == 'train.py' else ('val', 2)
    (data / 'labels' / split / '1.png').unlink()
    said = say(tool, segmentation_config, data)
    assert f'1 of {count} images' in said
    assert f'the first is {data}/labels/{split}/1.png' in said


@pytest.mark.parametrize('tool', TOOLS)
def test_missing_pictures(
    tool: str, detection_config: Path, tiny_coco: Path, say: Callable, tmp_path: Path
) -> None:
    data = tmp_path / 'data'
    shutil.copytree(tiny_coco, data)
    split, count = ('train', 8) if tool == 'train.py' else ('val', 4)
    (data / 'images' / f'{split}2.png').unlink()
    said = say(tool, detection_config, data)
    assert f'1 of {count} images' in said
    assert f'the first is {data}/images/{split}2.png' in said


@pytest.mark.parametrize('tool', TOOLS)
def test_damaged_annotation_file(
    tool: str, detection_config: Path, tiny_coco: Path, say: Callable, tmp_path: Path
) -> None:
    data = tmp_path / 'data'
    shutil.copytree(tiny_coco, data)
    file = data / ('train.json' if tool == 'train.py' else 'val.json')
    file.write_text(file.read_text()[:-9])
    assert f'reads {file}, which is empty, cut off or damaged' in say(tool, detection_config, data)
