"""The classifier tells clips of equal frames as it told the frame, and the example runs."""

import copy
import re

import pytest
import torch

pytest.importorskip('mmdet')
pytest.importorskip('sklearn')
pytest.importorskip('skimage')
from examples import video_with_sn as example
from sn_openmmlab import SwitchNorm, inflate_module


@pytest.mark.parametrize('norm', list(example.NORMS))
def test_the_inflated_classifier_gives_the_same_scores_on_still_clips(norm: str) -> None:
    torch.manual_seed(0)
    images, _, digits = example.load('train', 32, 1)
    network = example.Classifier(10, example.NORMS[norm])
    example.train(network, images[:, :, 0], digits, epochs=2, batch=16)
    video = inflate_module(copy.deepcopy(network)).eval()
    # Inflation leaves γ, β, λ and the running statistics alone.
    before, after = (
        {n: p for n, p in model.state_dict().items() if p.dim() < 4} for model in (network, video)
    )
    assert before.keys() == after.keys()
    assert all(value.equal(after[name]) for name, value in before.items())
    still = images.expand(-1, -1, 8, -1, -1)
    with torch.no_grad():
        torch.testing.assert_close(video(still), network.eval()(images[:, :, 0]))


def test_it_compares_the_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in dict(IMAGES=128, CLIPS=16, TEST=8, FRAMES=4).items():
        monkeypatch.setattr(example, name, value)
    found, video = example.compare('SN', epochs=1)
    assert list(found) == [
        'digits in images',
        'directions in clips, from scratch',
        'directions in clips, from images',
    ]
    assert all(0 <= value <= 100 for value in found.values())
    # One batch of two images and one of the clips have moved every layer.
    layers = [layer for layer in video.modules() if isinstance(layer, SwitchNorm)]
    assert len(layers) == 10
    for layer in layers:
        assert all((ratios != 1 / 3).any() for ratios in layer.importance_ratios())


def test_what_it_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(example, 'compare', lambda norm, epochs: ({'digits': 10 * epochs}, None))
    monkeypatch.setattr('sys.argv', ['video_with_sn.py', '3'])
    example.main()
    assert re.findall(r'(\w+): digits 30.0 %\n', capsys.readouterr().out) == list(example.NORMS)


def test_it_stays_short(repo) -> None:
    assert len((repo / 'examples/video_with_sn.py').read_text().splitlines()) < 120
