"""The lines of docs/your_config.md and of the README do to a config what the pages say."""

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
from sn_openmmlab.hooks import norm_warnings

# Norms of MMSegmentation's FCN: three in the stem, three in each of 16 blocks, four on shortcuts;
# three and one in the heads.
FCN = 3 + 3 * 16 + 4 + 3 + 1


def _blocks(page: Path) -> list[str]:
    return re.findall(r'```python\n(.*?)```', page.read_text(), re.DOTALL)


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., nn.Module]:
    """A function (toolbox, its config, lines) -> the model of a config with these lines."""

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
    top, parts, with_sn, frozen = _blocks(repo / 'docs/your_config.md')
    top = top.partition('\n')[2]
    base = ('mmseg', '_base_/models/fcn_r50-d8.py')
    assert _kinds(build(*base, top)) == {'SyncBN': FCN}
    assert _kinds(build(*base, top, parts)) == {'SN': FCN}
    assert _kinds(build(*base, top, with_sn)) == {'SyncSN': FCN}
    model = build(*base, top, frozen, parts).train()
    assert not any(p.requires_grad for layer in _norms(model) for p in layer.parameters())
    assert not any(layer.training for layer in _norms(model))


def test_examples_of_the_readme(
    repo: Path, build: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector, segmenter, _ = _blocks(repo / 'README.md')
    model = build('mmdet', 'faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py', detector)
    # The backbone 53, FPN two a level, the box head four.
    assert _kinds(model) == {'SN': 53 + 2 * 4 + 4}
    monkeypatch.setattr(norm_warnings, 'print_log', lambda text, **_: pytest.fail(text))
    norm_warnings.warn_of_norm_eval(model.train())
    imports = '\n'.join(detector.splitlines()[:2])
    model = build('mmseg', '_base_/models/fcn_r50-d8.py', imports, segmenter)
    assert _kinds(model) == {'SN': FCN}


def _norms(model: nn.Module) -> list[SwitchNorm]:
    return [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
