"""The experiment on CIFAR-10: the planned runs, and the tables of known records."""

from collections import Counter
from pathlib import Path

import pytest
from matplotlib.image import imread

from sn_openmmlab.runs.config import read_config
from studies.experiments import cifar10
from studies.experiments.records import Record

pytest.importorskip('mmpretrain')


def test_three_seeds_of_each_norm_and_batch(repo: Path, tmp_path: Path) -> None:
    runs = cifar10.prepare(tmp_path)
    norms, batches = ('sn', 'bn', 'gn'), (16, 2)
    expected = {(norm, batch): 3 for norm in norms for batch in batches}
    assert Counter((run.variant, run.batch) for run in runs) == expected
    assert len({run.name for run in runs}) == 18
    for run in runs:
        config = read_config(repo / run.config, run.options)
        assert config.train_dataloader.batch_size == run.batch
        assert config.model.backbone.norm_cfg.type == run.variant.upper()
        assert config.randomness.seed == run.seed
    # The tests of the configs say that nothing else differs.
    assert all(list(run.options) == ['randomness.seed'] for run in runs)


def make(variant: str, batch: int, seed: int, accuracy: float) -> Record:
    ratios = {'mean': {'in': 0.2, 'ln': 0.3, 'bn': 0.5}, 'var': {'in': 0.1, 'ln': 0.1, 'bn': 0.8}}
    parts = {'backbone': ratios, 'all': ratios} if variant == 'sn' else {}
    return Record(variant, batch, seed, {'accuracy/top1': [accuracy]}, parts)


def test_tables_and_pictures_of_known_records(tmp_path: Path) -> None:
    records = [
        make(variant, batch, seed, accuracy + 10 * seed)
        for seed in (0, 1, 2)
        for variant, batch, accuracy in (('sn', 16, 30), ('sn', 2, 20), ('bn', 2, 10))
    ]
    page = cifar10.all_tables(records, {'device': 'abacus', 'threads': 1, 'torch': '9'})
    assert '| SN | 16 | 40.0 ± 10.0 | 30.0, 40.0, 50.0 |' in page
    assert '| SN | 2 | 30.0 ± 10.0 |' in page
    assert '| BN | 2 | 20.0 ± 10.0 | 10.0, 20.0, 30.0 |' in page
    assert '| backbone | 2 | 0.200 ± 0.000 | 0.300 ± 0.000 | 0.500 ± 0.000 | 0.100 ± 0.0' in page
    cifar10.draw_figures(records, tmp_path)
    for name in ('accuracy.png', 'ratios.png'):
        assert imread(tmp_path / name).shape[2] == 4
