"""A converted backbone is fitted to images, held to torch's batch_norm on the same pixels."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from torch import Tensor, nn
from torch.nn import functional as F

from sn_openmmlab.checkpoints.plans.batch_norm import plan_batch_norm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.config import read_config
from sn_openmmlab.runs.fitting import fit_to_images

CONFIG = """
default_scope = 'mmdet'
custom_imports = dict(imports=['sn_openmmlab'], allow_failed_imports=False)
model = dict(
    type='RetinaNet',
    data_preprocessor=dict(
        type='DetDataPreprocessor', mean=[10.0, 20, 30], std=[40.0, 50, 60], bgr_to_rgb=True
    ),
    backbone=dict(
        type='ResNet', depth=18, base_channels=8, norm_cfg=dict(type='SN'), norm_eval=False,
        init_cfg=dict(type='SNPretrained', checkpoint='not there.pth'),
    ),
)
"""


@pytest.fixture(scope='module')
def bn() -> nn.Module:
    """Return a narrow ResNet-18 whose norms look trained."""
    torch.manual_seed(0)
    network = pytest.importorskip('mmdet.models').ResNet(depth=18, base_channels=8)
    with torch.no_grad():
        for name, value in network.state_dict().items():
            if name.endswith('running_var'):
                value.copy_(torch.logspace(-1, 1, len(value)))
            elif 'bn' in name and value.dim() == 1:
                value.normal_()

    network.eval()
    return network


@pytest.fixture(scope='module')
def state(bn: nn.Module) -> dict[str, Tensor]:
    return plan_batch_norm(bn.state_dict(), 0.6).convert()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with five images of the final size and another file."""
    rng = np.random.default_rng(0)
    images = tmp_path / 'images'
    images.mkdir()
    for i in range(5):
        cv2.imwrite(str(images / f'{i}.png'), rng.integers(0, 256, (224, 224, 3), np.uint8))
    (images / 'about.txt').write_text('five images')
    return images


@pytest.fixture
def config(write_config: Callable[[str], Path]) -> Config:
    return read_config(write_config(CONFIG))


def moments(x: Tensor) -> Tensor:
    return torch.stack([x.mean((0, 2, 3)), x.std((0, 2, 3), correction=0)])


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_first_layer_gives_what_batch_norm_gives(
    prefix: str, bn: nn.Module, state: dict, folder: Path, config: Config
) -> None:
    given = {prefix + name: weight for name, weight in state.items()}
    given['head.fc.weight'] = torch.ones(3, 64)
    if not prefix:
        del given['head.fc.weight']
    fitted, number = fit_to_images(given, config, folder)
    assert number == 5
    assert set(fitted) == set(given)
    changed = {n for n, w in fitted.items() if not w.equal(given[n])}
    layers = {n.rpartition('.')[0] for n in state if n.endswith('mean_weight')}
    assert changed == {f'{prefix}{name}.{part}' for name in layers for part in ('weight', 'bias')}

    files = sorted(folder.glob('*.png'))
    pixels = [torch.from_numpy(cv2.imread(str(file))[..., ::-1].copy()) for file in files]
    scales = (torch.tensor([10.0, 20, 30]), torch.tensor([40.0, 50, 60]))
    images = ((torch.stack(pixels) - scales[0]) / scales[1]).permute(0, 3, 1, 2)
    with torch.no_grad():
        x = bn.conv1(images)
        layer = bn.bn1
        wanted = F.batch_norm(
            x, layer.running_mean, layer.running_var, layer.weight, layer.bias, eps=layer.eps
        )
        # The mix of Eq. 3 and 5 by hand, with the fitted γ and β.
        mean, var = x.mean((2, 3), keepdim=True), x.var((2, 3), correction=0, keepdim=True)
        whole = x.flatten(1)
        ln = whole.mean(1)[:, None, None, None], whole.var(1, correction=0)[:, None, None, None]
        mu = 0.2 * mean + 0.2 * ln[0] + 0.6 * layer.running_mean[:, None, None]
        sigma = 0.2 * var + 0.2 * ln[1] + 0.6 * layer.running_var[:, None, None]
        gamma, beta = (fitted[f'{prefix}sn1.{part}'] for part in ('weight', 'bias'))
        y = (x - mu) / (sigma + layer.eps).sqrt() * gamma[:, None, None] + beta[:, None, None]
    torch.testing.assert_close(moments(y), moments(wanted), rtol=1e-4, atol=1e-4)


def test_another_backbone_is_refused(state: dict, folder: Path, config: Config) -> None:
    shallow = {name: weight for name, weight in state.items() if not name.startswith('layer4')}
    with pytest.raises(UsageError, match=r'another one: it also has layer4\.0\.conv1\.weight'):
        fit_to_images(shallow, config, folder)
    with pytest.raises(UsageError, match=r'another one: it also has nothing, and lacks fc\.'):
        fit_to_images({**state, 'fc.bias': torch.ones(3)}, config, folder)
    wide = {**state, 'conv1.weight': torch.ones(64, 3, 7, 7)}
    with pytest.raises(UsageError, match=r'another one: size mismatch for conv1\.weight'):
        fit_to_images(wide, config, folder)


def test_folder_without_images_is_refused(state: dict, config: Config, tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'empty' / 'about.txt').write_text('no images')
    for name in ('empty', 'missing'):
        with pytest.raises(UsageError, match=f'{name} .*: name .* with images to fit to'):
            fit_to_images(state, config, tmp_path / name)


def test_config_without_a_backbone_is_refused(
    state: dict, folder: Path, write_config: Callable[[str], Path]
) -> None:
    config = read_config(write_config("default_scope = 'mmdet'\nmodel = dict(type='FPN')"))
    with pytest.raises(
        UsageError, match=r'has no backbone and data_preprocessor .*: name another config'
    ):
        fit_to_images(state, config, folder)


def test_tool_writes_what_was_fitted(
    bn: nn.Module, folder: Path, config: Config, convert: Callable, tmp_path: Path
) -> None:
    torch.save(bn.state_dict(), tmp_path / 'bn.pth')
    output = tmp_path / 'sn.pth'
    options = ('--batch-ratio', 0.6, '--config', config.filename, '--fit-to', folder)
    code, out, err = convert(*options, tmp_path / 'bn.pth', output)
    assert (code, err) == (0, '')
    assert f'Fitted its SN layers to 5 images of {folder}.' in out
    written = torch.load(output, weights_only=True)
    assert written['meta']['fitted_to'] == 5
    expected, _ = fit_to_images(plan_batch_norm(bn.state_dict(), 0.6).convert(), config, folder)
    for name, weight in expected.items():
        torch.testing.assert_close(written['state_dict'][name], weight, rtol=1e-4, atol=1e-5)
    for arguments, said in (
        (
            ('--fit-to', folder, tmp_path / 'bn.pth', output),
            '--fit-to FOLDER and --config CONFIG',
        ),
        (('--dry-run', *options, tmp_path / 'bn.pth', output), '--dry-run fits nothing: leave out'),
        ((*options[2:], output, tmp_path / 'again.pth'), 'already converted from BatchNorm'),
    ):
        code, _, err = convert(*arguments)
        assert code == 2
        assert said in err
