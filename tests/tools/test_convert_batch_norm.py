"""tools/convert_checkpoint.py on networks with BatchNorm."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn


@pytest.fixture(scope='module')
def weights() -> dict[str, Tensor]:
    """The weights of a narrow ResNet-18 classifier."""
    model = pytest.importorskip('mmdet.models').ResNet(depth=18, base_channels=8)
    state = {
        name: torch.rand_like(value.float()) + 0.5 for name, value in model.state_dict().items()
    }
    return {**state, 'fc.weight': torch.rand(3, 64), 'fc.bias': torch.rand(3)}


@pytest.fixture
def source(weights: dict[str, Tensor], tmp_path: Path) -> Path:
    torch.save({'state_dict': weights}, tmp_path / 'bn.pth')
    return tmp_path / 'bn.pth'


@pytest.mark.parametrize(('options', 'ratio'), [((), 0.9), (('--batch-ratio', '0.5'), 0.5)])
def test_network_is_converted_and_verified(
    options: tuple, ratio: float, source: Path, weights: dict, convert: Callable, tmp_path: Path
) -> None:
    output = tmp_path / 'sn.pth'
    code, out, error = convert(source, output, *options)
    assert (code, error) == (0, '')
    # A ResNet-18 has 20 norms, each with five tensors and two λ, and 20 convolutions.
    assert out == (
        f'{source}: a ResNet-18 with BatchNorm.\n'
        'Dropped fc.weight, fc.bias, which a backbone does not have.\n'
        f'In its SN layers, bn starts at a ratio of {ratio}.\n'
        f'Wrote {20 * 8} weights to {output}.\n'
    )
    written = torch.load(output, weights_only=True)
    assert written['meta']['batch_ratio'] == ratio
    assert written['meta']['layout'] == 'resnet-bn'
    state = written['state_dict']
    assert torch.equal(state['layer2.0.sn1.running_mean'], weights['layer2.0.bn1.running_mean'])
    shares = state['layer3.0.downsample.1.var_weight'].softmax(0)
    assert shares.tolist() == pytest.approx([(1 - ratio) / 2, (1 - ratio) / 2, ratio])

    fits = 'fits a ResNet-18 with SN of in, ln, bn: no key is missing, none is unexpected.'
    assert convert('--verify', output) == (0, f'{output} {fits}\n', '')


def test_converted_file_is_not_converted_again(
    source: Path, convert: Callable, sentence: Callable, tmp_path: Path
) -> None:
    assert convert(source, tmp_path / 'sn.pth')[0] == 0
    code, _, error = convert(tmp_path / 'sn.pth', tmp_path / 'again.pth')
    assert code == 2
    assert 'already converted from BatchNorm: use it as it is' in sentence(error)


SMALL = dict(depth=18, base_channels=8, stem_channels=8)


@pytest.mark.parametrize(
    ('kind', 'settings'),
    [
        ('ResNet', dict(deep_stem=True)),
        ('ResNetV1d', {}),
        ('ResNet', dict(stem_channels=16)),
        (
            'ResNet',
            dict(num_stages=3, strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(2,)),
        ),
    ],
    ids=['v1c', 'v1d', 'wide stem', 'three stages'],
)
def test_every_plain_resnet_is_verified(
    kind: str, settings: dict, convert: Callable, tmp_path: Path
) -> None:
    models = pytest.importorskip('mmdet.models')
    model = getattr(models, kind)(**{**SMALL, **settings})
    torch.save(model.state_dict(), tmp_path / 'bn.pth')
    assert convert(tmp_path / 'bn.pth', tmp_path / 'sn.pth')[0] == 0
    code, out, error = convert('--verify', tmp_path / 'sn.pth')
    assert (code, error) == (0, '')
    assert 'fits a ResNet-18' in out


def test_model_of_other_networks_is_said_to_be_unknown(
    convert: Callable, sentence: Callable, tmp_path: Path
) -> None:
    models = pytest.importorskip('mmdet.models')
    for model in (models.ResNeXt(depth=50, groups=4, base_width=4), models.MobileNetV2()):
        torch.save(model.state_dict(), tmp_path / 'bn.pth')
        assert convert(tmp_path / 'bn.pth', tmp_path / 'sn.pth')[0] == 0
        code, _, error = convert('--verify', tmp_path / 'sn.pth')
        assert code == 2
        assert 'no plain ResNet, so its model is not known here. Name it' in sentence(error)


def test_classifier_is_kept_and_verified(source: Path, convert: Callable, tmp_path: Path) -> None:
    output = tmp_path / 'sn.pth'
    assert convert('--keep-classifier', source, output)[0] == 0
    state = torch.load(output, weights_only=True)['state_dict']
    assert state['head.fc.weight'].shape == (3, 64)
    assert state['backbone.sn1.mean_weight'].argmax() == 2
    code, out, _ = convert('--verify', output)
    assert (code, 'and its classifier' in out) == (0, True)


def test_dry_run_shows_what_is_new_and_writes_nothing(
    source: Path, convert: Callable, tmp_path: Path
) -> None:
    code, out, _ = convert('--dry-run', source, tmp_path / 'sn.pth', '--batch-ratio', '1')
    assert code == 0
    rows = [[cell.strip() for cell in line.split('│')[1:-1]] for line in out.splitlines()]
    assert ['layer1.0.bn2.bias', 'layer1.0.sn2.bias', '(8,)'] in rows
    assert ['new: bn at 1', 'layer1.0.sn2.mean_weight', '(3,)'] in rows
    assert not (tmp_path / 'sn.pth').exists()


def test_other_network_is_converted(convert: Callable, tmp_path: Path) -> None:
    net = nn.ModuleDict({'conv': nn.Conv2d(3, 4, 1), 'bn': nn.BatchNorm2d(4)})
    torch.save(net.state_dict(), tmp_path / 'bn.pth')
    code, out, _ = convert(tmp_path / 'bn.pth', tmp_path / 'sn.pth')
    assert (code, 'a network with BatchNorm.' in out) == (0, True)
    assert 'sn.mean_weight' in torch.load(tmp_path / 'sn.pth', weights_only=True)['state_dict']
    code, _, error = convert('--verify', tmp_path / 'sn.pth')
    assert (code, error.count('\n')) == (2, 1)


@pytest.mark.parametrize('ratio', ['0', '-1', '1.5', 'nan'])
def test_impossible_ratio_is_one_sentence(
    ratio: str, source: Path, convert: Callable, sentence: Callable, tmp_path: Path
) -> None:
    code, _, error = convert(source, tmp_path / 'sn.pth', f'--batch-ratio={ratio}')
    assert code == 2
    assert 'outside (0, 1]' in sentence(error)
    assert not (tmp_path / 'sn.pth').exists()


def test_ratio_for_a_network_with_sn_is_one_sentence(
    source: Path, convert: Callable, sentence: Callable, tmp_path: Path
) -> None:
    assert convert(source, tmp_path / 'sn.pth')[0] == 0
    state = torch.load(tmp_path / 'sn.pth', weights_only=True)['state_dict']
    torch.save(state, tmp_path / 'bare.pth')
    code, _, error = convert(tmp_path / 'bare.pth', tmp_path / 'again.pth', '--batch-ratio', '0.5')
    assert code == 2
    assert 'no BatchNorm to give a ratio to: leave out --batch-ratio' in sentence(error)


def test_missing_weight_is_named(
    weights: dict, convert: Callable, sentence: Callable, tmp_path: Path
) -> None:
    torch.save({k: v for k, v in weights.items() if 'layer4.1.bn2' not in k}, tmp_path / 'bn.pth')
    code, _, error = convert(tmp_path / 'bn.pth', tmp_path / 'sn.pth')
    assert code == 2
    assert 'lacks layer4.1.sn2.weight' in sentence(error)
