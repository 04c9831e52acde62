"""The page on the zoos agrees with the committed records."""

import json
import re
from pathlib import Path

import pytest

from studies.presentation.zoo_tables import has_norms, is_all_sn, zoo_tables
from studies.zoos.records import Run, read_runs
from studies.zoos.sample import SAMPLE


@pytest.fixture(scope='module')
def runs(repo: Path) -> list[Run]:
    return read_runs(repo / 'docs/zoo')


@pytest.fixture(scope='module')
def page(repo: Path) -> str:
    return (repo / 'docs/results/zoo.md').read_text()


def test_tables_are_those_of_the_records(runs: list[Run], repo: Path, page: str) -> None:
    tables = (repo / 'docs/zoo/tables.md').read_text()
    assert tables == zoo_tables(runs)
    rows = re.findall(r'^\|.*\|$', page, re.MULTILINE)
    assert len(rows) >= 2 + 3
    assert set(rows) <= set(tables.splitlines())


def test_every_config_that_builds_builds_with_sn(runs: list[Run]) -> None:
    surveys = [run for run in runs if run.part != 'steps']
    assert {run.part for run in surveys} == {'mmdet', 'mmseg', 'mmpretrain'}
    for run in surveys:
        others = [r for r in run.records if has_norms(r) and not is_all_sn(r)]
        # The page names these two.
        assert all(r['config'].startswith('spark/spark_sparse-resnet50') for r in others)
        assert all('sn' in r for r in run.records if has_norms(r))


def test_the_whole_sample_trained(runs: list[Run], page: str) -> None:
    steps = [run for run in runs if run.part == 'steps']
    sample = [(toolbox, path) for toolbox in SAMPLE for path in SAMPLE[toolbox]]
    assert steps
    assert f'{len(sample)} models' in page
    for run in steps:
        assert [(r['toolbox'], r['config']) for r in run.records] == sample
        assert all(r['2']['finite'] for r in run.records)


def test_the_page_names_machine_and_versions(repo: Path, page: str, runs: list[Run]) -> None:
    for stack in {run.stack for run in runs}:
        about = json.loads((repo / f'docs/zoo/{stack}.json').read_text())
        assert about['machine']['torch'].split('+')[0] in page
        for name, version in about['versions'].items():
            assert f'{name} {version}' in page
