"""The files, layouts and commands on the page about the authors' checkpoints exist."""

import re
from pathlib import Path

import pytest
from mmengine.registry import DefaultScope

from sn_openmmlab.checkpoints.plans.layouts import LAYOUTS
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.runs.config import read_config


@pytest.fixture(scope='session')
def page(repo: Path) -> str:
    return (repo / 'docs/model_zoo.md').read_text()


def test_files_and_layouts_are_there(page: str, repo: Path) -> None:
    links = re.findall(r'\]\((\.\./[^)#]+)\)', page)
    assert len(links) >= 4
    for link in links:
        assert (repo / 'docs' / link).exists(), link
    names = {layout.name for layout in LAYOUTS if layout.of_authors}
    assert names < set(re.findall('`([^`]+)`', page))


def test_config_of_the_command_has_the_authors_variance(page: str, repo: Path) -> None:
    config = re.search(r'tools/test\.py (\S+) \S+$', page, re.MULTILINE)[1]
    model = read_config(repo / config).model
    model.backbone.init_cfg = None
    models = pytest.importorskip('mmseg.registry').MODELS
    with DefaultScope.overwrite_default_scope('mmseg'):
        built = models.build(model)
    layers = [module for module in built.modules() if isinstance(module, SwitchNorm)]
    assert len(layers) == 53 + 2
    assert {layer.correction for layer in layers} == {1}
