"""Mistakes in config files, work folders and paths."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studies.mistakes.case import Case, Scene
from studies.mistakes.configs import TASKS


def place_cases() -> list[Case]:
    """Return all of them."""
    return [*_config_files(), *_work_folders(), *_odd_paths()]


def _config_files() -> list[Case]:
    def file(task: str, change: str, text: str) -> Case:
        def spoil(scene: Scene) -> None:
            (scene.folder / 'config.py').write_text(text)

        return Case(task, f'the config {change}', spoil)

    return [
        file('box', 'is empty', ''),
        file('box', 'is text', 'Train this, please.\n'),
        file('map', 'has a bracket that does not close', 'model = dict(\n'),
        file('class', 'has a tab in place of spaces', 'if True:\n\tx = 1\n        y = 2\n'),
        file('box', 'has a base that is missing', "_base_ = './absent.py'\n"),
        file('map', 'is its own base', "_base_ = './config.py'\n"),
        file('box', 'has a base of an unknown toolbox', "_base_ = 'mmdett::a/b.py'\n"),
        file('class', 'imports what is not there', 'import absent_module\n'),
        file('map', 'divides by zero', 'x = 1 / 0\n'),
        file('class', 'ends the program', 'import sys\nsys.exit(0)\n'),
        file('box', 'uses a name that is not defined', 'model = backbone\n'),
        Case('box', 'the config is a folder', lambda scene: (scene.folder / 'config.py').mkdir()),
        Case('map', 'the config is no text', _binary_config),
        Case('class', 'nobody may read the config', _secret_config),
        Case('box', 'command line: `--cfg-options model.backbone.depth=deep`', _deep),
        Case('map', 'command line: `--cfg-options model.type.name=1`', _through_text),
    ]


def _work_folders() -> list[Case]:
    def folder(task: str, change: str, spoil: Callable[[Path], Any], name: str = 'work') -> Case:
        def change_folder(scene: Scene) -> None:
            spoil(scene.folder)
            scene.arguments[-1] = name

        return Case(task, f'the work folder {change}', change_folder)

    def read_only(place: Path) -> None:
        (place / 'shut').mkdir()
        (place / 'shut').chmod(0o555)

    def full(place: Path) -> None:
        (place / 'work/config.py').mkdir(parents=True)

    return [
        *(folder(task, 'is read-only', read_only, 'shut') for task in TASKS),
        folder('box', 'lies in a read-only folder', read_only, 'shut/work'),
        folder('map', 'is a file', lambda place: (place / 'work').write_text('')),
        folder('class', 'lies in a file', lambda place: (place / 'a').write_text(''), 'a/work'),
        folder('box', 'is a link to nothing', lambda place: (place / 'work').symlink_to('gone')),
        folder('map', 'has a folder in place of the config', full),
        folder('class', 'has a name of 300 letters', lambda place: None, 'w' * 300),
        folder('box', 'has a name with spaces and ä', lambda place: None, 'my wörk'),
        folder('class', 'is on a device', lambda place: None, '/dev/null/work'),
    ]


def _odd_paths() -> list[Case]:
    def moved(task: str) -> Callable[[Scene], None]:
        def spoil(scene: Scene) -> None:
            odd = 'mé données 数据 (1)'
            scene.data.rename(scene.folder / odd)
            scene.config.update(_replaced(scene.config, 'data', odd))

        return spoil

    return [
        *(
            Case(task, 'spaces and letters such as é and 数 in paths', moved(task))
            for task in TASKS
        ),
        Case('box', 'an image has a name with spaces, é and 数', _rename_image),
        Case('class', 'a class has a name with spaces, é and 数', _rename_class),
        *(Case(task, 'a root that is not there', _no_root) for task in TASKS),
        *(Case(task, 'the data are empty', _empty_data) for task in ('box', 'map')),
    ]


def _replaced(part: Any, old: str, new: str) -> Any:
    """Return a part of a config with another name of the data's folder."""
    if isinstance(part, dict):
        return {key: _replaced(value, old, new) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return type(part)(_replaced(value, old, new) for value in part)
    is_path = isinstance(part, str) and (part == old or part.startswith(f'{old}/'))
    return new + part[len(old) :] if is_path else part


def _binary_config(scene: Scene) -> None:
    (scene.folder / 'config.py').write_bytes(b'\xff\xd8\xff\xe0\x00')


def _secret_config(scene: Scene) -> None:
    (scene.folder / 'config.py').write_text('model = {}\n')
    (scene.folder / 'config.py').chmod(0)


def _deep(scene: Scene) -> None:
    scene.arguments += ['--cfg-options', 'model.backbone.depth=deep']


def _through_text(scene: Scene) -> None:
    scene.arguments += ['--cfg-options', 'model.type.name=1']


def _rename_image(scene: Scene) -> None:
    name = 'an ïmage 图.jpg'
    (scene.data / 'images/train/2.jpg').rename(scene.data / 'images/train' / name)
    file = scene.data / 'annotations/train.json'
    table = json.loads(file.read_text())
    table['images'][2]['file_name'] = name
    file.write_text(json.dumps(table))


def _rename_class(scene: Scene) -> None:
    for split in ('train', 'val'):
        (scene.data / 'classes' / split / 'dark').rename(
            scene.data / 'classes' / split / 'dü nkel 暗'
        )


def _no_root(scene: Scene) -> None:
    scene.set('train_dataloader.dataset.data_root', 'nowhere/')


def _empty_data(scene: Scene) -> None:
    for file in scene.data.rglob('*'):
        if file.is_file():
            file.unlink()
