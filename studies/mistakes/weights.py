"""Mistakes in the files of weights that a training starts from or a test reads."""

from collections.abc import Callable
from typing import Any

import torch
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, init_default_scope

from studies.mistakes.case import Case, Config, Scene
from studies.mistakes.configs import TASKS, good_config

FILE = 'weights.pth'


def weight_cases() -> list[Case]:
    """Return all of them: for a start, for a resumed training and for a test."""
    return [*_starts(), *_resumes(), *_tests()]


def _starts() -> list[Case]:
    def start(task: str, change: str, spoil: Callable[[Scene], Any]) -> Case:
        def with_start(scene: Scene) -> None:
            scene.config['load_from'] = FILE
            spoil(scene)

        return Case(task, f'`load_from`: {change}', with_start)

    cases = [start(task, what, spoil) for task, what, spoil in _files('box', 'class')]
    cases.append(start('box', 'a classifier', lambda scene: save(scene, 'class')))
    cases.append(start('map', 'a detector', lambda scene: save(scene, 'box')))
    cases.append(start('class', 'a number', lambda scene: scene.config.update(load_from=3)))
    for task in ('box', 'class'):
        cases.append(Case(task, '`init_cfg` names a file that is missing', _missing_start))
    return cases


def _resumes() -> list[Case]:
    def resume(task: str, change: str, spoil: Callable[[Scene], Any]) -> Case:
        def with_resume(scene: Scene) -> None:
            scene.arguments += ['--resume', FILE]
            spoil(scene)

        return Case(task, f'`--resume`: {change}', with_resume)

    return [
        *(resume(task, what, spoil) for task, what, spoil in _files('map')),
        resume('box', 'a model with masks', lambda scene: save(scene, 'mask')),
        resume('box', 'weights without an optimizer', lambda scene: save(scene, 'box')),
        Case('box', '`last_checkpoint` names a file that is gone', _lost_checkpoint),
        Case('map', '`last_checkpoint` is empty', _empty_last_checkpoint),
    ]


def _tests() -> list[Case]:
    def test(task: str, change: str, spoil: Callable[[Scene], Any]) -> Case:
        return Case(task, change, spoil, 'test.py')

    def changed(key: str, value: Any) -> Callable[[Scene], None]:
        def spoil(scene: Scene) -> None:
            save(scene, task_of(scene))
            scene.set(key, value)

        return spoil

    def option(*words: str) -> Callable[[Scene], None]:
        def spoil(scene: Scene) -> None:
            save(scene, task_of(scene))
            scene.arguments.extend(words)

        return spoil

    cases = [test(task, what, spoil) for task, what, spoil in _files('box', 'map', 'class')]
    for task, other in (('box', 'class'), ('map', 'class'), ('class', 'map'), ('mask', 'map')):
        cases.append(test(task, f'weights: of another task ({other})', _saver(other)))
    cases += [
        test('mask', 'weights: a detector without masks', _saver('box')),
        test('box', 'weights: a detector with masks', _saver('mask')),
        *(test(task, 'weights: one is NaN', _save_nan) for task in TASKS),
        test('box', '`test_evaluator.metric = "bbbox"`', changed('test_evaluator.metric', 'bbbox')),
        test('map', '`test_evaluator = []`', changed('test_evaluator', [])),
        test('class', 'without `test_evaluator`', _tested_without('test_evaluator')),
        test('box', 'without `test_dataloader`', _tested_without('test_dataloader')),
        test('map', 'without `test_cfg`', _tested_without('test_cfg')),
        test('class', '`test_cfg.type = "TestLop"`', changed('test_cfg', dict(type='TestLop'))),
        test(
            'box',
            '`test_dataloader.persistent_workers = True`',
            changed('test_dataloader.persistent_workers', True),
        ),
        test(
            'map', '`test_dataloader.num_workers = -1`', changed('test_dataloader.num_workers', -1)
        ),
        test('map', '`--tta` without its settings', option('--tta')),
        test('box', '`--out` names a text file', option('--out', 'found.txt')),
        test('class', '`--out` into a folder that is missing', option('--out', 'no/found.pkl')),
        test('box', '`--show-dir` is a file', option('--show-dir', 'config.py')),
        test('box', 'an image is text', _saved_with(_spoil_image)),
        test('map', 'a label map has the class 2', _saved_with(_spoil_map)),
        test('box', 'the annotation file is cut off', _saved_with(_cut_annotations)),
        test('class', 'other classes than the model', _saved_with(_third_class)),
    ]
    return cases


def _files(*tasks: str) -> list[tuple[str, str, Callable[[Scene], Any]]]:
    """Return the faults of a file, whatever reads it."""
    found: list[tuple[str, str, Callable[[Scene], Any]]] = []
    for task in tasks:
        found += [
            (task, 'weights: the file is missing', lambda scene: None),
            (task, 'weights: the file is empty', lambda scene: _write(scene, b'')),
            (task, 'weights: the file is text', lambda scene: _write(scene, b'no weights')),
            (task, 'weights: the file is a folder', lambda scene: (scene.folder / FILE).mkdir()),
            (task, 'weights: the file ends early', _cut_weights),
            (task, 'weights: a list', lambda s: torch.save([1, 2], s.folder / FILE)),
            (task, 'weights: no tensors', lambda s: torch.save({'a': 1}, s.folder / FILE)),
            (task, 'weights: one has another shape', _save_misfit),
        ]
    return found


def task_of(scene: Scene) -> str:
    """Return the task of a scene by its model."""
    kinds = dict(FasterRCNN='box', MaskRCNN='mask', EncoderDecoder='map', ImageClassifier='class')
    return kinds[scene.config['model']['type']]


def save(scene: Scene, task: str) -> None:
    """Save the weights of an untrained model."""
    torch.save(dict(state_dict=weights(good_config(task))), scene.folder / FILE)


def weights(config: Config) -> dict[str, torch.Tensor]:
    """Return the weights of an untrained model."""
    init_default_scope(config['default_scope'])
    torch.manual_seed(0)
    return MODELS.build(ConfigDict(config['model'])).state_dict()


def _saver(task: str) -> Callable[[Scene], None]:
    return lambda scene: save(scene, task)


def _write(scene: Scene, content: bytes) -> None:
    (scene.folder / FILE).write_bytes(content)


def _cut_weights(scene: Scene) -> None:
    save(scene, task_of(scene))
    _write(scene, (scene.folder / FILE).read_bytes()[:3000])


def _save_misfit(scene: Scene) -> None:
    state = weights(good_config(task_of(scene)))
    state['backbone.layer1.0.conv1.weight'] = torch.zeros(3, 3, 1, 1)
    torch.save(dict(state_dict=state), scene.folder / FILE)


def _save_nan(scene: Scene) -> None:
    state = weights(good_config(task_of(scene)))
    state['backbone.layer1.0.conv1.weight'][0] = float('nan')
    torch.save(dict(state_dict=state), scene.folder / FILE)


def _missing_start(scene: Scene) -> None:
    scene.config['model']['backbone']['init_cfg'] = dict(type='Pretrained', checkpoint='absent.pth')


def _lost_checkpoint(scene: Scene) -> None:
    (scene.folder / 'work').mkdir()
    (scene.folder / 'work/last_checkpoint').write_text('work/epoch_7.pth')
    scene.arguments.append('--resume')


def _empty_last_checkpoint(scene: Scene) -> None:
    (scene.folder / 'work').mkdir()
    (scene.folder / 'work/last_checkpoint').write_text('')
    scene.arguments.append('--resume')


def _tested_without(key: str) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        save(scene, task_of(scene))
        scene.remove(key)

    return spoil


def _saved_with(spoil_data: Callable[[Scene], Any]) -> Callable[[Scene], None]:
    def spoil(scene: Scene) -> None:
        save(scene, task_of(scene))
        spoil_data(scene)

    return spoil


def _spoil_image(scene: Scene) -> None:
    (scene.data / 'images/val/0.jpg').write_text('no image')


def _spoil_map(scene: Scene) -> None:
    from studies.mistakes.labels import _write

    _write(scene.data / 'labels/val/0.png', 2)


def _cut_annotations(scene: Scene) -> None:
    file = scene.data / 'annotations/val.json'
    file.write_text(file.read_text()[:-20])


def _third_class(scene: Scene) -> None:
    (scene.data / 'classes/val/grey').mkdir()
    file = scene.data / 'classes/val/grey/0.jpg'
    file.write_bytes(next((scene.data / 'classes/val/dark').iterdir()).read_bytes())
