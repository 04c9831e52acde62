"""The lines of docs/guides/your_config.md change a config as the page says."""

import re
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.analysis.norms import norm_layers

# Norms of MMSegmentation's FCN: three in the stem, three in each of 16 blocks, four on shortcuts;
# three and one in the heads.
FCN = 3 + 3 * 16 + 4 + 3 + 1


def _blocks(page: Path) -> list[str]:
    return re.findall(r'```python\n(.*?)```', page.read_text(), re.DOTALL)


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., nn.Module]:
    """Return a function from a toolbox, its config and more lines to the model."""

    def of(toolbox: str, base: str, *lines: str) -> nn.Module:
        base = Path(find_spec(toolbox).origin).parent / '.mim/configs' / base
        file = tmp_path / 'config.py'
        file.write_text(f"_base_ = '{base}'\n" + '\n'.join(lines))
        with DefaultScope.overwrite_default_scope(toolbox):
            return MODELS.build(Config.fromfile(file).model)

    return of


def _kinds(model: nn.Module) -> Counter:
    return Counter(layer.kind for layer in norm_layers(model))


def test_segmenter_of_the_page(repo: Path, build: Callable) -> None:
    _, top, parts, _, with_sn, frozen, _ = _blocks(repo / 'docs/guides/your_config.md')
    top = top.partition('\n')[2]
    base = ('mmseg', '_base_/models/fcn_r50-d8.py')
    assert _kinds(build(*base, top)) == {'SyncBN': FCN}
    assert _kinds(build(*base, top, parts)) == {'SN': FCN}
    assert _kinds(build(*base, top, with_sn)) == {'SN': FCN}
    model = build(*base, top, frozen, parts).train()
    assert not any(p.requires_grad for layer in _norms(model) for p in layer.parameters())
    assert not any(layer.training for layer in _norms(model))


def _norms(model: nn.Module) -> list[SwitchNorm]:
    return [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
