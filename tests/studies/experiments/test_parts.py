"""Every experiment shows the results of the part of its trainings that is finished."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip('mmpretrain')

from studies.experiments.records import Record, read_records
from tests.studies.experiments import test_claims, test_longer_detection

MACHINE = {'device': 'a CPU', 'threads': 1, 'torch': '2'}
COMMITTED = ('batch_average', 'from_batch_norm', 'from_cifar10', 'from_imagenet', 'small_batch',
             'sparse')  # fmt: skip
OTHERS = {'claims': test_claims.RECORDS, 'longer_detection': test_longer_detection.RECORDS}


def records_of(study: str, repo: Path) -> Sequence[Record]:
    return OTHERS.get(study) or read_records(repo / f'docs/{study}/runs.json')[0]


@pytest.mark.parametrize('study', [*COMMITTED, *OTHERS])
def test_one_variant_has_tables(study: str, repo: Path) -> None:
    module, records = import_module(f'studies.experiments.{study}'), records_of(study, repo)
    for variant in {record.variant for record in records}:
        alone = [record for record in records if record.variant == variant]
        assert module.all_tables(alone[:1], MACHINE)
        assert module.all_tables(alone, MACHINE)


@pytest.mark.filterwarnings('error::RuntimeWarning')
@pytest.mark.parametrize('study', ['small_batch', 'sparse', *OTHERS])
def test_one_training_has_figures(study: str, repo: Path, tmp_path: Path) -> None:
    module, records = import_module(f'studies.experiments.{study}'), records_of(study, repo)
    without_sn = [record for record in records if not record.variant.startswith('sn')]
    module.draw_figures((without_sn or records)[:1], tmp_path)
    module.draw_figures((without_sn or records)[-1:], tmp_path)
    assert list(tmp_path.glob('*.png'))
