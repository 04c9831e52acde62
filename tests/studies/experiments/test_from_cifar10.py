"""Detectors from a classifier of CIFAR-10: the planned runs, and the tables of known records."""

from copy import deepcopy
from pathlib import Path

import pytest
from matplotlib.image import imread

from sn_openmmlab.runs.config import read_config
from studies.experiments import from_cifar10
from studies.experiments.plan import Run
from studies.experiments.records import Record


def test_detectors_differ_in_their_start_and_seed_alone(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    starts, rest = {}, []
    for run in from_cifar10.detectors(Path('work/epoch_1.pth')):
        config = read_config(run.config, run.options)
        assert config.randomness.seed == run.seed
        starts[run.name] = deepcopy(config.model.backbone.init_cfg)
        config.model.backbone.init_cfg = config.randomness = None
        rest.append(config.to_dict())
    ours = dict(type='SNPretrained', checkpoint='work/epoch_1.pth')
    assert starts == {
        f'{name}_b2_s{seed}': start
        for seed in (0, 1, 2)
        for name, start in (('scratch', None), ('pretrained', ours))
    }
    assert all(settings == rest[0] for settings in rest)
    assert rest[0]['train_cfg']['max_epochs'] == 1


def test_classifier_is_trained_before_and_its_checkpoint_is_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = []

    def train(runs: list[Run], script: Path, work_dir: Path, jobs: int) -> None:
        (run,) = runs
        trained.append(run.config)
        folder = work_dir / run.name
        folder.mkdir(parents=True)
        (folder / 'epoch_1.pth').touch()
        (folder / 'last_checkpoint').write_text('/elsewhere/epoch_1.pth')

    monkeypatch.setattr(from_cifar10, 'train_missing', train)
    runs = from_cifar10.prepare(tmp_path)
    assert trained == ['configs/classification/cifar10/resnet18_sn_1xb32_cifar10-64x64.py']
    file = tmp_path / 'classifier' / from_cifar10.CLASSIFIER.name / 'epoch_1.pth'
    files = {run.options.get('model.backbone.init_cfg.checkpoint') for run in runs}
    assert files == {None, str(file)}


def test_table_and_picture_of_known_records(tmp_path: Path) -> None:
    def make(variant: str, seed: int, ap: float) -> Record:
        metrics = {f'coco/bbox_mAP{end}': [ap] for end in ('', '_50', '_75')}
        return Record(variant, 2, seed, metrics, {})

    records = [
        make(variant, seed, ap + 0.1 * seed)
        for seed in (0, 1, 2)
        for variant, ap in (('scratch', 0.1), ('pretrained', 0.2))
    ]
    page = from_cifar10.all_tables(records, {'device': 'abacus', 'threads': 1, 'torch': '9'})
    assert '| random weights | 20.0 ± 10.0 | 20.0 ± 10.0 | 20.0 ± 10.0 | 10.0, 20.0, 30.0 |' in page
    assert '| the classifier of CIFAR-10 | 30.0 ± 10.0 |' in page
    from_cifar10.draw_figures(records, tmp_path)
    assert imread(tmp_path / 'ap.png').shape[2] == 4
