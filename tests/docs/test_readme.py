"""The README is short, its example trains, and its numbers agree with the records."""

import re
from pathlib import Path
from statistics import mean

import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

from sn_openmmlab.analysis.norms import norm_layers
from studies.experiments.records import read_records

NONE = '\N{EN DASH}'
AP = 'coco/bbox_mAP'


@pytest.fixture(scope='module')
def readme(repo: Path) -> str:
    return (repo / 'README.md').read_text()


@pytest.fixture(scope='module')
def rows(readme: str) -> list[list[str]]:
    """Return the rows of the table of results: BN, frozen BN, GN and SN of each."""
    table = [line for line in readme.splitlines() if line.startswith('| from')]
    return [[cell.strip() for cell in line.split('|')[2:-1]] for line in table]


def last_ap(repo: Path, name: str, variant: str, metric: str = AP) -> str:
    """Return the mean over the seeds of box AP in percent after the last epoch."""
    records, _ = read_records(repo / f'docs/{name}/runs.json')
    found = [r for r in records if (r.variant, r.batch) == (variant, 2)]
    assert len(found) == 3
    return f'{mean(100 * record.metrics[metric][-1] for record in found):.1f}'


def test_sections_are_in_order_and_few(readme: str) -> None:
    sections = re.findall(r'^## (.*)$', readme, re.MULTILINE)
    assert sections == [
        'Install',
        'Use it in a config',
        'Results',
        'Limits',
        'Links',
        'Citation',
        'Licence',
    ]
    assert len(readme.splitlines()) < 120
    assert 'https://arxiv.org/abs/1806.10779' in readme
    assert {'make quickstart', 'make test'} <= set(re.findall(r'^make \w+', readme, re.MULTILINE))


def test_results_agree_with_the_records(repo: Path, rows: list[list[str]]) -> None:
    scratch, longer, classifier, imagenet, _ = rows
    small = [last_ap(repo, 'small_batch', norm) for norm in ('bn', 'gn', 'sn')]
    assert scratch == [small[0], NONE, *small[1:]]
    long = [last_ap(repo, 'longer_detection', n, f'moving 0.1/{AP}') for n in ('bn', 'gn', 'sn')]
    assert longer == [long[0], NONE, *long[1:]]
    frozen, ours = (
        last_ap(repo, 'from_batch_norm', f'{start}-long') for start in ('frozen-bn', 'sn-0.90')
    )
    assert classifier == [NONE, frozen, NONE, ours]
    starts = ('bn', 'frozen-bn', 'gn', 'sn-0.90')
    assert imagenet == [last_ap(repo, 'from_imagenet', f'raccoon-{start}') for start in starts]


def test_results_on_bccd_agree_with_its_page(repo: Path, rows: list[list[str]]) -> None:
    page = (repo / 'docs/results/bccd.md').read_text()
    ap = dict(re.findall(r'^\| (SN|GN|BN)\b[^|]*\| ([\d.]+) \|', page, re.MULTILINE)[:3])
    assert rows[-1] == [ap['BN'], NONE, ap['GN'], ap['SN']]


@pytest.fixture
def mmdet_scope() -> None:
    init_default_scope('mmdet')


@pytest.mark.usefixtures('mmdet_scope')
def test_five_lines_train_a_step_with_sn_everywhere(
    readme: str, repo: Path, tmp_path: Path
) -> None:
    testing = pytest.importorskip('mmdet.testing')
    _, block = re.findall(r'```python\n(.*?)```', readme, re.DOTALL)
    base, *lines = block.splitlines()
    assert base.startswith('_base_ = ')
    assert len(lines) == 5
    file = tmp_path / 'five_lines.py'
    file.write_text(block)
    config = Config.fromfile(file).model
    # Hundreds of RoIs would take a minute.
    config.train_cfg.rcnn.sampler.num = 16
    model = MODELS.build(config).train()
    # The backbone 53, the FPN two a level, the box head four.
    assert [layer.kind for layer in norm_layers(model)] == ['SN'] * (53 + 2 * 4 + 4)
    # No norm_eval or frozen stage holds a layer.
    assert all(module.training for module in model.modules())
    batch = testing.demo_mm_inputs(2, [[3, 64, 64]] * 2, num_classes=80)
    batch = model.data_preprocessor(batch, training=True)
    sum(
        value.sum()
        for name, losses in model(**batch, mode='loss').items()
        if 'loss' in name
        for value in (losses if isinstance(losses, list) else [losses])
    ).backward()
    assert all(parameter.grad is not None for parameter in model.backbone.parameters())
    page = (repo / 'docs/guides/your_config.md').read_text()
    assert block.strip() in page
