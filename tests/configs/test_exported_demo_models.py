"""The demo's networks, exported with every kind of SN, compute what they compute in PyTorch."""

import runpy
from itertools import cycle, product
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import Tensor, nn

from sn_openmmlab.layers.sparse import sparsify
from sn_openmmlab.layers.switch_norm import SwitchNorm
from tests.exporters import Exported, export_onnx, export_program, export_traced_onnx

REPO = Path(__file__).parents[2]
DEMOS = {
    'detector': 'faster-rcnn_r18_fpn_sn-all_digits.py',
    'segmenter': 'deeplab_r18b-d8_sn_digits.py',
    'classifier': 'resnet18_sn_digits.py',
}
# Nothing else in these networks has this size: where it stands, it came from the batch.
BATCH = 13
MADE = (BATCH, 3, 72, 104)
SIZES = [(1, 3, 96, 72), (2, 3, 80, 136), (3, 3, 72, 72)]

# The arguments of a layer, and for sparse SN the scopes that it chose.
SCOPES = ('in', 'ln', 'bn')
DENSE = [
    {},
    {'scopes': ('in', 'ln')},
    {'scopes': ('in', 'gn', 'ln', 'bn'), 'num_groups': 4},
    {'correction': 1},
    {'num_ratio_groups': 2},
]
KINDS = [
    *((options, None) for options in DENSE),
    *(({}, choice) for choice in product(SCOPES, SCOPES)),
    ({'num_ratio_groups': 2}, ('in', 'ln')),
    ({'scopes': ('gn', 'bn'), 'num_groups': 8}, ('gn', 'gn')),
]


def _layer(channels: int, kind: tuple[dict, tuple[str, str] | None]) -> SwitchNorm:
    """Return a layer of a kind, with random parameters and running statistics."""
    options, choice = kind
    layer = SwitchNorm(channels, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.rand_like(parameter) + 0.5)
        if layer.running_mean is not None:
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
        if choice is not None:
            layer.mean_weight[..., layer.scopes.index(choice[0])] = 2
            layer.var_weight[..., layer.scopes.index(choice[1])] = 2
            if layer.num_ratio_groups > 1:  # groups that differ
                layer.mean_weight[-1, layer.scopes.index('bn')] = 3
            sparsify(layer)
    return layer


def _network(file: str) -> nn.Module:
    """Return what the example exports of a demo's model, its SN layers of all kinds in turn."""
    config = Config.fromfile(REPO / 'configs/demo' / file)
    if config.default_scope == 'mmpretrain':
        pytest.importorskip('mmpretrain')
    init_default_scope(config.default_scope)
    torch.manual_seed(0)
    model = MODELS.build(config.model)
    part = runpy.run_path(str(REPO / 'examples/export_to_onnx.py'))['Exported']
    # The RoI heads of the detector are not exported.
    kinds = cycle(KINDS)
    for name, layer in list(model.named_modules()):
        if isinstance(layer, SwitchNorm) and 'roi_head' not in name:
            parent, _, child = name.rpartition('.')
            setattr(model.get_submodule(parent), child, _layer(layer.num_features, next(kinds)))
    return part(model, config.default_scope).eval()


# The others take up to two minutes each.
SLOW = [
    *product(['segmenter', 'classifier'], [export_program]),
    *product(DEMOS, [export_onnx]),
]
FAST = [('detector', export_program), *product(DEMOS, [export_traced_onnx])]
WAYS = [*FAST, *(pytest.param(way, marks=pytest.mark.slow) for way in SLOW)]


@pytest.fixture(scope='module', params=WAYS, ids=lambda way: f'{way[0]}-{way[1].__name__}')
def exported(request: pytest.FixtureRequest) -> tuple[nn.Module, Exported]:
    """Return a network, and what an exporter made of it from a batch of `BATCH` images."""
    name, export = request.param
    network = _network(DEMOS[name])
    return network, export(network, torch.randn(MADE))


def _outputs(network: nn.Module, images: Tensor) -> list[Tensor]:
    with torch.no_grad():
        outputs = network(images)
    return [outputs] if isinstance(outputs, Tensor) else list(outputs)


def _assert_equal(found: list[Tensor], expected: list[Tensor]) -> None:
    """Both compute in float32, with different orders of summation."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        atol = 2e-5 * float(other.abs().max())
        torch.testing.assert_close(one, other, rtol=0, atol=atol)


def test_other_numbers_and_sizes_of_images_give_what_the_network_gives(exported):
    network, graph = exported
    for size in SIZES:
        images = torch.randn(size)
        _assert_equal(graph.run(images), _outputs(network, images))


def test_an_image_gives_the_same_alone_and_in_a_batch(exported):
    _, graph = exported
    images = 3 * torch.randn(4, 3, 72, 80)
    images[1:] += 5  # a batch of unlike images
    together = graph.run(images)
    for i in range(len(images)):
        _assert_equal(graph.run(images[i : i + 1]), [maps[i : i + 1] for maps in together])


def test_nothing_in_the_graph_depends_on_the_size_of_the_batch(exported):
    _, graph = exported
    assert graph.integers  # channels, strides and the like
    assert BATCH not in graph.integers
    # Means and sums run along channels or positions, never along the images.
    assert graph.reduced
    assert graph.reduced <= {1, 2, 3, -1}
