"""The experiment on batch average: the planned runs, and the tables of known records."""

import json
from collections import Counter
from pathlib import Path

import pytest
from matplotlib.image import imread

from sn_openmmlab.runs.config import read_config
from studies.experiments import batch_average
from studies.experiments.records import Record
from tests.studies.experiments.settings import without_norms

pytest.importorskip('mmpretrain')
pytest.importorskip('mmdet')


@pytest.fixture
def work_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder beside annotations of four images with a box each."""
    images = [{'id': i} for i in range(4)]
    data = {'images': images, 'annotations': [{'image_id': i} for i in range(4)]}
    (tmp_path / 'all.json').write_text(json.dumps(data))
    monkeypatch.setattr(batch_average, '_ANNOTATIONS', tmp_path / 'all.json')
    return tmp_path / 'work'


def test_runs_of_a_task_differ_in_the_norm_and_the_seed_alone(
    repo: Path, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    runs = batch_average.prepare(work_dir)
    seeds = Counter(run.variant for run in runs)
    assert seeds['cifar-sn'] == seeds['cifar-bn'] >= 2
    assert seeds['detector-sn'] == seeds['detector-bn'] >= 1
    assert len({run.name for run in runs}) == len(runs)
    rest: dict[str, dict] = {}
    for run in runs:
        assert run.options == {'randomness.seed': run.seed}
        if run.seed:
            continue
        config = read_config(run.config, run.options)
        assert config.train_dataloader.batch_size == run.batch
        task, _, norm = run.variant.partition('-')
        assert config.model.backbone.norm_cfg.type == norm.upper()
        settings = without_norms(config.to_dict())
        assert rest.setdefault(task, settings) == settings
    half = json.loads(Path(rest['detector']['val_evaluator']['ann_file']).read_text())
    assert half == {
        'images': [{'id': 0}, {'id': 2}],
        'annotations': [{'image_id': 0}, {'image_id': 2}],
    }


def make(variant: str, seed: int, metric: str, value: float) -> Record:
    """A record whose moving average is ahead of batch average by 10 and 0, and by 0 further on."""
    course = [value + seed] * (6 if 'accuracy' in metric else 5)
    ahead = [value + seed + 10 * seed, *course[1:]]
    metrics = {f'moving 0.1/{metric}': ahead, f'batch average/{metric}': course}
    return Record(variant, 2, seed, {**metrics, f'batch average/{metric}_50': course}, {})


def test_tables_and_picture_of_known_records(tmp_path: Path) -> None:
    records = [
        make(f'{task}-{norm}', seed, metric, value)
        for task, metric, value, seeds in (
            ('cifar', 'accuracy/top1', 30, (0, 1)),
            ('detector', 'coco/bbox_mAP', 0.5, (1,)),
        )
        for seed in seeds
        for norm in ('sn', 'bn')
    ]
    page = batch_average.all_tables(records, {'device': 'abacus', 'threads': 1, 'torch': '9'})
    head, *parts = page.split('\n## ')
    assert 'over 2 seeds' in head
    accuracy, difference, ap, _ = parts
    assert accuracy.startswith('CIFAR-10, 2 images a step: top-1 accuracy (%), 2 seeds\n')
    assert '| norm | statistics | 1/16 | 1/8 | 1/4 | 1/2 | 3/4 | 1 |' in accuracy
    assert '| SN | moving 0.1 | 35.5 ± 7.8 | 30.5 ± 0.7 |' in accuracy
    assert '| BN | batch average | 30.5 ± 0.7 | 30.5 ± 0.7 |' in accuracy
    assert '| SN | moving 0.1 | 5.0 ± 7.1 | 0.0 ± 0.0 |' in difference
    assert '| SN | batch average |' not in difference
    assert ap.startswith('digits, 2 images a step: box AP (%), 1 seed\n')
    assert '| norm | statistics | 1/8 | 1/4 | 1/2 | 3/4 | 1 |' in ap
    assert '| SN | batch average | 150.0 | 150.0 |' in ap
    batch_average.draw_figures(records, tmp_path)
    assert imread(tmp_path / 'course.png').shape[2] == 4
