"""The index of the models, the pages of the families, the configs and the paper's tables agree."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from mmengine.config import Config
from modelindex.load_model_index import load
from modelindex.models.Model import Model
from modelindex.models.ModelIndex import ModelIndex

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / 'configs'
SHIPPED = sorted(file for file in CONFIGS.rglob('*.py') if '_base_' not in file.parts)
METAFILES = sorted(CONFIGS.rglob('metafile.yml'))

# The paper's Tables 3, 4 and 7 as printed: AP of boxes and of masks in each row.
PAPER = {
    'faster-rcnn_r50_fpn_bn-frozen_1x_coco': (3, 1, '36.7', None),
    'faster-rcnn_r50_fpn_gn-head_1x_coco': (3, 2, '37.2', None),
    'faster-rcnn_r50_fpn_sn-head_1x_coco': (3, 3, '38.0', None),
    'faster-rcnn_r50_fpn_gn-all_1x_coco': (3, 4, '38.2', None),
    'faster-rcnn_r50_fpn_sn-all_1x_coco': (3, 5, '39.3', None),
    'mask-rcnn_r50_fpn_bn-frozen_2x_coco': (4, 1, '38.6', '34.2'),
    'mask-rcnn_r50_fpn_gn-head_2x_coco': (4, 2, '39.5', '34.4'),
    'mask-rcnn_r50_fpn_sn-head_2x_coco': (4, 3, '40.0', '34.8'),
    'mask-rcnn_r50_fpn_gn-all_2x_coco': (4, 4, '40.2', '35.7'),
    'mask-rcnn_r50_fpn_gn-backbone_sn-head_2x_coco': (4, 5, '40.4', '36.0'),
    'mask-rcnn_r50_fpn_sn-all_2x_coco': (4, 6, '41.0', '36.5'),
    'faster-rcnn_r50_c4_bn-frozen_4xb3-120k_coco': (7, 1, '29.6', None),
    'faster-rcnn_r50_c4_bn_4xb3-120k_coco': (7, 2, '19.3', None),
    'faster-rcnn_r50_c4_gn_4xb3-120k_coco': (7, 3, '32.7', None),
    'faster-rcnn_r50_c4_sn_4xb3-120k_coco': (7, 4, '33.0', None),
    'faster-rcnn_r50_c4_bn_scratch-4xb3-120k_coco': (7, 5, '20.0', None),
    'faster-rcnn_r50_c4_gn_scratch-4xb3-120k_coco': (7, 6, '28.3', None),
    'faster-rcnn_r50_c4_sn_scratch-4xb3-120k_coco': (7, 7, '29.5', None),
}
# Table 5 as printed: mIoU at one scale and at several.
SEGMENTERS = {
    'deeplab_r50b-d8_syncbn_8xb2-100k_ade20k-450x450': (1, '36.4', '37.7'),
    'deeplab_r50b-d8_gn_8xb2-100k_ade20k-450x450': (2, '35.7', '36.3'),
    'deeplab_r50b-d8_sn_8xb2-100k_ade20k-450x450': (3, '38.7', '39.2'),
    'deeplab_r50b-d8_syncbn_8xb1-700e_cityscapes-713x713': (1, '69.7', '73.0'),
    'deeplab_r50b-d8_gn_8xb1-700e_cityscapes-713x713': (2, '68.4', '73.1'),
    'deeplab_r50b-d8_sn_8xb1-700e_cityscapes-713x713': (3, '71.2', '75.1'),
}
# Table 2 as printed, by columns: top-1 of BN, GN and SN, the table's rows. BN did not converge at
# (8,1).
TOP_1 = {
    '8xb32': ('76.4', '75.9', '76.9'),
    '8xb16': ('76.3', '75.8', '76.7'),
    '8xb8': ('75.2', '76.0', '76.7'),
    '8xb4': ('72.7', '75.8', '75.9'),
    '8xb2': ('65.3', '75.9', '75.6'),
    '1xb16': ('76.2', '75.9', '76.3'),
    '1xb32': ('76.5', '75.8', '76.6'),
    '8xb1': (None, '75.5', '75.0'),
    '1xb8': ('75.4', '75.5', '75.9'),
}
CLASSIFIERS = {
    f'resnet50_{norm}_{setting}_in1k': (row, column[row - 1])
    for setting, column in TOP_1.items()
    for row, norm in enumerate(('bn', 'gn', 'sn'), 1)
}
# What the paper says in its text.
GROUP_SN = 'resnet50_sn-g2_8xb32_in1k'
# What a cell holds that has nothing to hold.
EMPTY = '\N{EN DASH}'
# What a name says of the data, where we trained nothing.
DATA = {'coco': 'COCO', 'cityscapes': 'Cityscapes', 'ade20k': 'ADE20K', 'in1k': 'ImageNet'}
PAPER_KEYS = (
    'Row of the Paper',
    'Box AP of the Paper',
    'Mask AP of the Paper',
    'mIoU of the Paper',
    'Multi-Scale mIoU of the Paper',
    'Top-1 of the Paper',
)


@pytest.fixture(scope='module')
def index() -> ModelIndex:
    """Return the index as mim loads it."""
    return load(str(ROOT / 'model-index.yml'))


@pytest.fixture(scope='module')
def models(index: ModelIndex) -> dict[str, Model]:
    """Return the models of the index by name."""
    return {model.name: model for model in index.models}


@pytest.fixture(scope='module')
def rows() -> dict[str, dict[str, str]]:
    """Return the table rows of the READMEs: name of the config -> heading -> cell."""
    found = {}
    for metafile in METAFILES:
        lines = metafile.with_name('README.md').read_text().splitlines()
        tables = [cells(line) for line in lines if line.startswith('|')]
        for row in tables[2:]:
            name, file = re.fullmatch(r'\[(.*)\]\((.*)\)', row[0]).groups()
            assert name not in found
            assert file == f'{name}.py'
            assert metafile.with_name(file) in SHIPPED
            found[name] = dict(zip(tables[0], row, strict=True))
    return found


def cells(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in line.strip('|').split('|')]


def test_index_imports_every_metafile_and_finds_no_fault(index: ModelIndex) -> None:
    imports = yaml.safe_load((ROOT / 'model-index.yml').read_text())['Import']
    assert [ROOT / file for file in imports] == METAFILES
    # As in all of OpenMMLab a README is named from the top; only this checker looks beside the
    # metafile.
    faults = [fault for fault in index.check(silent=True) if 'Path to README' not in fault]
    assert faults == []


def test_every_config_is_in_one_metafile_under_its_name(index: ModelIndex) -> None:
    assert Counter(model.name for model in index.models) == Counter(file.stem for file in SHIPPED)
    assert sorted(ROOT / model.config for model in index.models) == SHIPPED
    assert all(Path(model.config).stem == model.name for model in index.models)


def test_every_model_is_in_the_collection_of_its_folder(index: ModelIndex) -> None:
    pages = {collection.name: ROOT / collection.readme for collection in index.collections}
    assert len(pages) == len(METAFILES)
    for model in index.models:
        page = pages[model.in_collection]
        assert page.is_file()
        assert page == (ROOT / model.config).with_name('README.md')


def test_mim_can_make_its_table(index: ModelIndex) -> None:
    for part in (*index.models, *index.collections):
        assert all(isinstance(key, str) for key in part.metadata.data)
        for value in part.metadata.data.values():
            assert isinstance(value, str | int | float) or all(isinstance(v, str) for v in value)
            assert value != []
        # It downloads what stands here, and there is nothing to download yet.
        assert part.weights is None


def test_every_config_has_a_row_on_the_page_of_its_family(rows: dict) -> None:
    assert sorted(rows) == sorted(file.stem for file in SHIPPED)


def test_the_papers_numbers_are_the_papers(rows: dict, models: dict[str, Model]) -> None:
    for name, model in models.items():
        table, row, box, mask = PAPER.get(name, (None, None, None, None))
        single = several = top = None
        if name in SEGMENTERS:
            table, (row, single, several) = 5, SEGMENTERS[name]
        if name in CLASSIFIERS:
            table, (row, top) = 2, CLASSIFIERS[name]
        place = f'Table {table}, row {row}' if table else None
        if name == GROUP_SN:
            place, top = 'Sec. 2, variants of SN', '77.2'
        expected = dict(zip(PAPER_KEYS, (place, box, mask, single, several, top), strict=True))
        metadata = {key: model.metadata.data.get(key) for key in PAPER_KEYS}
        assert {key: value and str(value) for key, value in metadata.items()} == expected
        page = {key.lower(): cell for key, cell in rows[name].items()}
        for key, value in expected.items():
            empty = 'none' if key == PAPER_KEYS[0] else EMPTY
            assert page.get(key.lower(), empty) == (value or empty), (name, key)
    assert set(models) >= {*PAPER, *SEGMENTERS, *CLASSIFIERS, GROUP_SN}


@pytest.mark.parametrize('file', SHIPPED, ids=lambda file: file.stem)
def test_what_is_said_of_a_run_is_what_the_config_does(
    file: Path, rows: dict, models: dict[str, Model], index: ModelIndex
) -> None:
    collections = {part.name: part.metadata.data for part in index.collections}
    config, said = Config.fromfile(file), models[file.stem].metadata.data
    for mark, data in DATA.items():
        if f'_{mark}' in file.stem:
            collection = collections[models[file.stem].in_collection]
            assert said.get('Training Data', collection['Training Data']) == data
    rounds = config.train_dataloader.dataset.get('times', 1)
    length = config.train_cfg.get('max_epochs', 0) * rounds
    assert said.get('Epochs', 0) == length
    assert said.get('Iterations') == config.train_cfg.get('max_iters')
    assert said['Batch Size'] == config.auto_scale_lr.base_batch_size

    weights = config.model.backbone.get('init_cfg')
    start = weights.checkpoint if weights else config.get('load_from')
    assert said.get('Starts From') == start
    assert rows[file.stem]['starts from'] == (f'`{start}`' if start else 'random weights')


def test_only_what_we_measured_is_a_result(rows: dict, models: dict[str, Model]) -> None:
    for name, model in models.items():
        ours = [cell for key, cell in rows[name].items() if key.startswith('our ')]
        assert ours
        assert bool(model.results) == any(cell != EMPTY for cell in ours), name
        if re.search(f'_({"|".join(DATA)})', name):
            assert not model.results


def test_results_on_bccd_are_those_of_its_page(rows: dict, models: dict[str, Model]) -> None:
    lines = (ROOT / 'docs/results/bccd.md').read_text().splitlines()
    header = next(line for line in lines if line.startswith('| norm | val AP |'))
    for line in lines[lines.index(header) + 2 :][:3]:
        measured = dict(zip(cells(header), cells(line), strict=True))
        norm = measured['norm'].split()[0].lower()
        name = f'faster-rcnn_r18_fpn_{norm}-all_scratch_bccd'
        results = {result.dataset: result.metrics for result in models[name].results}
        for dataset, short in (('BCCD validation', 'val'), ('BCCD test', 'test')):
            said = {key: str(value) for key, value in results[dataset].items()}
            assert said['box AP'] == measured[f'{short} AP']
            assert said['box AP50'] == measured[f'{short} AP50']
        for kind in ('AP', 'AP50'):
            val, test = measured[f'val {kind}'], measured[f'test {kind}']
            assert rows[name][f'our {kind}, validation (test)'] == f'{val} ({test})'


def test_results_of_the_quickstarts_are_those_of_their_page(rows: dict, index: ModelIndex) -> None:
    page = (ROOT / 'docs/index.md').read_text()
    makefile = (ROOT / 'Makefile').read_text()
    configs = re.findall(r'^QUICKSTART\w* := (\S+)$', makefile, re.MULTILINE)
    results = re.findall(r'^\| `make quickstart[^`]*` .*\| (.*) \|$', page, re.MULTILINE)
    models = {model.config: model for model in index.models}
    for config, said in zip(configs, results, strict=True):
        measured = [x for result in models[config].results for x in result.metrics.values()]
        assert re.findall(r'\d+\.\d', said) == [str(value) for value in measured]
        assert all(str(value) in rows[Path(config).stem]['our result'] for value in measured)
