"""SNPretrained starts a module from any checkpoint that fits, and says why others do not."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.model import BaseModule
from mmengine.registry import WEIGHT_INITIALIZERS
from torch import Tensor, nn

from sn_openmmlab.checkpoints.pretrained import SNPretrained
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm


class Child(BaseModule):
    """Initializes its convolution itself, like mmcv's ConvModule."""

    def __init__(self, norm: type[nn.Module], name: str, **settings: object) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)
        self.add_module(name, norm(4, **settings))

    def init_weights(self) -> None:
        nn.init.constant_(self.conv.weight, -7)


class Plain(nn.Module):
    """The same, but not a module of MMEngine."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def init_weights(self) -> None:
        nn.init.constant_(self.conv.weight, -7)


class Net(BaseModule):
    """Has two children and a norm."""

    def __init__(
        self, norm: type[nn.Module], init_cfg: object = None, blocks: int = 1, **settings: object
    ) -> None:
        super().__init__(init_cfg)
        name = 'sn' if norm is SwitchNorm else 'bn'
        self.child = Child(norm, name, **settings)
        self.plain = Plain()
        self.layer1 = nn.Sequential(*(nn.Conv2d(4, 4, 1) for _ in range(blocks)))
        self.add_module(f'{name}1', norm(4, **settings))
        self.fc = nn.Linear(4, 2)


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    """A function (model, prefix) -> a file of its weights, each filled with its own number."""

    def write(model: nn.Module, prefix: str = '', **others: Tensor) -> str:
        state = model.state_dict()
        for i, value in enumerate(state.values()):
            value.fill_(i + 1)
        state = {prefix + name: value for name, value in state.items()}
        torch.save({'state_dict': {**state, **others}, 'epoch': 3}, tmp_path / 'weights.pth')
        return str(tmp_path / 'weights.pth')

    return write


def start(net: nn.Module, checkpoint: str, **settings: object) -> nn.Module:
    """Initialize a network as a config would."""
    net.init_cfg = dict(type='SNPretrained', checkpoint=checkpoint, **settings)
    net.init_weights()
    return net


def test_batch_norm_is_converted_and_all_else_loaded(save: Callable) -> None:
    source = Net(nn.BatchNorm2d)
    net = start(Net(SwitchNorm), save(source), batch_ratio=0.5)
    for part in ('weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'):
        assert torch.equal(getattr(net.sn1, part), getattr(source.bn1, part))
        assert torch.equal(getattr(net.child.sn, part), getattr(source.child.bn, part))
    for ratios in (*net.sn1.importance_ratios(), *net.child.sn.importance_ratios()):
        assert ratios.tolist() == pytest.approx([0.25, 0.25, 0.5])
    # The children would have filled these with -7.
    assert torch.equal(net.child.conv.weight, source.child.conv.weight)
    assert torch.equal(net.plain.conv.weight, source.plain.conv.weight)


@pytest.mark.parametrize('norm', [SwitchNorm, nn.BatchNorm2d])
@pytest.mark.parametrize(
    'nesting',
    [
        ('', None),
        ('module.', None),
        ('backbone.', None),
        ('backbone.', 'backbone'),
        ('module.a.b.', 'a.b.'),
        ('module.backbone.', 'module.backbone.'),
    ],
)
def test_own_weights_are_loaded_from_any_prefix(
    norm: type[nn.Module], nesting: tuple, save: Callable
) -> None:
    source = Net(norm)
    prefix, part = nesting
    file = save(source, prefix, **{'neck.conv.weight': torch.ones(1)})
    net = start(Net(norm), file, prefix=part)
    assert all(torch.equal(net.state_dict()[k], v) for k, v in source.state_dict().items())


def test_unexpected_and_missing_weights_are_logged(
    save: Callable, log: pytest.LogCaptureFixture
) -> None:
    source = Net(nn.BatchNorm2d)
    del source.fc
    net = start(Net(SwitchNorm), save(source, **{'head.fc.weight': torch.ones(1)}))
    assert net.sn1.bias.tolist() == source.bn1.bias.tolist()
    assert 'unexpected key in source state_dict: head.fc.weight\n' in log.text
    assert 'missing keys in source state_dict: fc.weight, fc.bias\n' in log.text
    assert f'load model from: {net.init_cfg["checkpoint"]}' in log.text


def test_source_of_the_parameters_is_recorded(save: Callable, tmp_path: Path) -> None:
    net = Net(SwitchNorm)
    net._params_init_info = {p: dict(tmp_mean_value=0, init_info='') for p in net.parameters()}
    SNPretrained(save(Net(nn.BatchNorm2d)))(net)
    infos = {info['init_info'] for info in net._params_init_info.values()}
    assert f'SNPretrained: load from {tmp_path / "weights.pth"}' in infos


def test_initializers_before_it_are_overwritten_and_none_may_follow(save: Callable) -> None:
    source = Net(nn.BatchNorm2d)
    ours = dict(type='SNPretrained', checkpoint=save(source))
    other = dict(type='Constant', layer='Conv2d', val=5)
    net = Net(SwitchNorm, [other, ours])
    net.init_weights()
    assert torch.equal(net.child.conv.weight, source.child.conv.weight)
    with pytest.raises(
        UsageError, match=r'Net has Constant after SNPretrained, .* SNPretrained last'
    ):
        Net(SwitchNorm, [ours, other]).init_weights()
    # MMEngine would load it last, wherever it stands.
    plain = dict(type='Pretrained', checkpoint=save(Net(SwitchNorm)))
    with pytest.raises(UsageError, match=r'Net has Pretrained after SNPretrained, .* without Pre'):
        Net(SwitchNorm, [plain, ours]).init_weights()


def _without(*names: str) -> Callable[[nn.Module], nn.Module]:
    def cut(net: nn.Module) -> nn.Module:
        for name in names:
            parent, _, child = name.rpartition('.')
            delattr(net.get_submodule(parent), child)
        return net

    return cut


@pytest.mark.parametrize(
    ('source', 'settings', 'words'),
    [
        (lambda: _without('bn1')(Net(nn.BatchNorm2d)), {}, r'these SN layers: sn1\.$'),
        (
            lambda: _without('plain')(Net(nn.BatchNorm2d)),
            {},
            r'it lacks plain\.conv\.weight, plain\.conv\.bias',
        ),
        (lambda: _without('sn1')(Net(SwitchNorm)), {}, r'for these SN layers: sn1\.$'),
        (
            lambda: Net(SwitchNorm, scopes=('in', 'ln')),
            {},
            r'it mixes 2 scopes, but .* child\.sn mixes in, ln, bn: set the scopes that it was',
        ),
        (
            lambda: Net(nn.BatchNorm2d),
            {'scopes': ('in', 'ln')},
            r"sn mixes in, ln, which cannot take over .* of child\.bn: add 'bn'",
        ),
        (
            lambda: Net(nn.BatchNorm2d, blocks=3),
            {},
            r'blocks .* lacks, such as layer1\.1\.weight',
        ),
        (
            lambda: Net(nn.BatchNorm2d),
            {'affine': False},
            r'have no child\.sn\.weight.* remove affine=False',
        ),
        (lambda: nn.ModuleDict({'fc': nn.Linear(4, 2)}), {}, 'neither SN nor BatchNorm'),
    ],
    ids=[
        'norm',
        'conv',
        'own_norm',
        'own_scopes',
        'scopes',
        'blocks',
        'not affine',
        'no_norm',
    ],
)
def test_misfit_is_named_and_nothing_is_loaded(
    source: Callable, settings: dict, words: str, save: Callable
) -> None:
    file = save(source())
    net = Net(SwitchNorm, **settings)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with pytest.raises(UsageError, match=words) as caught:
        start(net, file)
    assert str(caught.value).startswith(f'{file} cannot start Net: ')
    assert all(torch.equal(net.state_dict()[k], v) for k, v in before.items())


def test_network_of_batch_norm_does_not_start_from_one_of_sn(save: Callable) -> None:
    file = save(Net(SwitchNorm))
    words = r'lacks child\.bn\.weight.* has child\.sn\.weight.* in their place'
    with pytest.raises(UsageError, match=words):
        start(Net(nn.BatchNorm2d), file)


@pytest.mark.parametrize('scopes', [('bn', 'in', 'ln'), ('in', 'gn', 'bn'), ('in', 'ln')])
def test_recorded_order_of_the_scopes_has_to_be_the_layers(
    scopes: tuple[str, ...], save: Callable
) -> None:
    file = save(Net(SwitchNorm))
    checkpoint = torch.load(file, weights_only=True)
    checkpoint['meta'] = {'converter': 'sn_openmmlab', 'scopes': ['in', 'ln', 'bn']}
    torch.save(checkpoint, file)
    start(Net(SwitchNorm), file)
    words = r"trained with scopes=\('in', 'ln', 'bn'\), but .*: set scopes=.* in its norm_cfg"
    with pytest.raises(UsageError, match=words):
        start(Net(SwitchNorm, scopes=scopes, num_groups=2), file)


@pytest.mark.parametrize('scopes', [3, 'in,ln,bn', torch.ones(3), [1, 2, 3]], ids=str)
def test_recorded_scopes_of_another_type_are_ignored(scopes: object, save: Callable) -> None:
    source = Net(SwitchNorm)
    file = save(source)
    checkpoint = torch.load(file, weights_only=True)
    torch.save({**checkpoint, 'meta': {'converter': 'x', 'scopes': scopes}}, file)
    assert torch.equal(start(Net(SwitchNorm), file).sn1.mean_weight, source.sn1.mean_weight)


def test_statistics_are_left_out_where_none_are_tracked(save: Callable) -> None:
    source = Net(nn.BatchNorm2d)
    net = start(Net(SwitchNorm, track_running_stats=False), save(source))
    assert torch.equal(net.sn1.weight, source.bn1.weight)


def test_sequence_may_end_early(save: Callable) -> None:
    """A sequence of stages does so if only the first ones are needed."""
    source, net = Net(nn.BatchNorm2d), Net(SwitchNorm)
    for model, length in ((source, 3), (net, 2)):
        model.stages = nn.Sequential(*(nn.Conv2d(4, 4, 1) for _ in range(length)))
    start(net, save(source))
    assert torch.equal(net.stages[1].weight, source.stages[1].weight)


def test_it_may_be_called_beside_an_init_cfg(save: Callable) -> None:
    source, net = Net(nn.BatchNorm2d), Net(SwitchNorm)
    net.init_cfg = [dict(type='Constant', layer='Conv2d', val=5)]
    SNPretrained(save(source))(net)
    assert torch.equal(net.plain.conv.weight, source.plain.conv.weight)


def test_weight_that_is_there_twice_is_named(save: Callable) -> None:
    source = Net(nn.BatchNorm2d)
    file = save(source, **{'module.fc.bias': torch.ones(2)})
    with pytest.raises(UsageError, match=r'both fc\.bias and module\.fc\.bias, which are the same'):
        start(Net(SwitchNorm), file)
    file = save(source, **{'backbone.fc.bias': torch.zeros(2)})
    with pytest.raises(UsageError, match=r'has fc\.bias with and without backbone\.'):
        start(Net(nn.BatchNorm2d), file)
    net = start(Net(nn.BatchNorm2d), file, prefix='')
    assert torch.equal(net.fc.bias, source.fc.bias)


@pytest.mark.parametrize(
    ('name', 'value'), [('plain.conv.weight', float('nan')), ('bn1.running_var', -1)]
)
def test_broken_values_are_refused(name: str, value: float, tmp_path: Path) -> None:
    state = Net(nn.BatchNorm2d).state_dict()
    state[name].view(-1)[0] = value
    torch.save(state, tmp_path / 'broken.pth')
    with pytest.raises(UsageError, match='NaN, infinity or a negative variance'):
        start(Net(SwitchNorm), str(tmp_path / 'broken.pth'))


def test_wrong_prefix_is_refused(save: Callable) -> None:
    with pytest.raises(UsageError, match=r'starts with neck\.: their names are child\.conv'):
        start(Net(SwitchNorm), save(Net(nn.BatchNorm2d)), prefix='neck')


@pytest.mark.parametrize(
    'odd', [Tensor.to_sparse, lambda weight: weight.to('meta'), Tensor.int, Tensor.cfloat]
)
def test_tensors_that_are_not_dense_are_refused(odd: Callable, tmp_path: Path) -> None:
    state = Net(nn.BatchNorm2d).state_dict()
    state['plain.conv.weight'] = odd(state['plain.conv.weight'])
    torch.save(state, tmp_path / 'odd.pth')
    with pytest.raises(UsageError, match=r'not dense floating-point tensors: plain\.conv\.weight'):
        start(Net(SwitchNorm), str(tmp_path / 'odd.pth'))


def test_missing_file_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r'there is no checkpoint file absent\.pth'):
        start(Net(SwitchNorm), 'absent.pth')


def test_file_that_could_run_code_is_refused(malicious: Callable) -> None:
    file, marker = malicious('system', True)
    with pytest.raises(UsageError, match='could run code'):
        start(Net(SwitchNorm), str(file))
    assert not marker.exists()


def test_offsets_of_a_deformable_convolution_may_be_missing(save: Callable) -> None:
    net, source = Net(SwitchNorm), Net(nn.BatchNorm2d)
    net.plain.conv.conv_offset = nn.Conv2d(4, 2, 1)
    start(net, save(source))
    assert torch.equal(net.plain.conv.weight, source.plain.conv.weight)


def test_it_is_registered() -> None:
    cfg = dict(type='SNPretrained', checkpoint='a.pth', prefix='b.', batch_ratio=0.5)
    built = WEIGHT_INITIALIZERS.build(cfg)
    assert (built.checkpoint, built.prefix, built.batch_ratio) == ('a.pth', 'b.', 0.5)
    assert built.map_location == 'cpu'


@pytest.mark.parametrize('checkpoint', [{}, {'checkpoint': None}, {'checkpoint': ''}], ids=str)
def test_missing_checkpoint_is_one_sentence(checkpoint: dict) -> None:
    with pytest.raises(UsageError, match=r'has no checkpoint: name the file .*checkpoint=FILE\)'):
        WEIGHT_INITIALIZERS.build(dict(type='SNPretrained', **checkpoint))
    net = Net(SwitchNorm, dict(type='SNPretrained', **checkpoint))
    with pytest.raises(UsageError, match='has no checkpoint'):
        net.init_weights()


class Classifier(Net):
    """Ends in a convolution, whose channels are the classes."""

    def __init__(self, norm: type[nn.Module], classes: int, width: int = 4) -> None:
        super().__init__(norm)
        self.plain.conv = nn.Conv2d(4, width, 1)
        self.cls = nn.Conv2d(width, classes, 1)


@pytest.mark.parametrize('norm', [SwitchNorm, nn.BatchNorm2d])
def test_last_layer_of_other_classes_is_left_out(
    norm: type[nn.Module], save: Callable, log: pytest.LogCaptureFixture
) -> None:
    source, net = Classifier(norm, 80), Classifier(SwitchNorm, 3)
    drawn = net.cls.weight.clone()
    start(net, save(source))
    assert torch.equal(net.cls.weight, drawn)
    assert torch.equal(net.plain.conv.weight, source.plain.conv.weight)
    assert 'size mismatch for cls.weight' in log.text
    # In another network, the layer that follows differs too.
    with pytest.raises(UsageError, match=r'shape \(8, 4, 1, 1\), not \(4, 4, 1, 1\), of plain'):
        start(Classifier(SwitchNorm, 3), save(Classifier(norm, 3, width=8)))


class ZeroInitialized(Net):
    """Its last γ start at 0 unless it starts from weights, as in MMPretrain's ResNet."""

    def init_weights(self) -> None:
        super().init_weights()
        if isinstance(self.init_cfg, dict) and self.init_cfg['type'] == 'Pretrained':
            return
        nn.init.zeros_(self.get_submodule('sn1').weight)


@pytest.mark.parametrize('before', [[], [dict(type='Constant', layer='Conv2d', val=5)]])
def test_class_that_asks_whether_it_is_pretrained_learns_it(before: list, save: Callable) -> None:
    source = Net(nn.BatchNorm2d)
    file = save(source)
    net = ZeroInitialized(SwitchNorm, [*before, dict(type='SNPretrained', checkpoint=file)])
    net.init_weights()
    assert torch.equal(net.sn1.weight, source.bn1.weight)


def test_weights_are_returned_without_loading_them(save: Callable) -> None:
    file, net = save(Net(nn.BatchNorm2d)), Net(SwitchNorm)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    weights = SNPretrained(file).weights(net)
    assert all(torch.equal(net.state_dict()[k], value) for k, value in before.items())
    SNPretrained(file)(net)
    assert weights.keys() == net.state_dict().keys()
    assert all(torch.equal(net.state_dict()[k], value) for k, value in weights.items())


@pytest.mark.parametrize('prefix', [None, 'backbone'])
def test_settings_that_layers_recorded_have_to_be_the_layers(
    prefix: str | None, save: Callable, tmp_path: Path
) -> None:
    source = Net(SwitchNorm, scopes=('bn', 'in', 'ln'), correction=1)
    file = str(tmp_path / 'recorded.pth')
    torch.save(
        nn.ModuleDict(
            {'backbone': source} if prefix else dict(source.named_children())
        ).state_dict(),
        file,
    )
    start(Net(SwitchNorm, scopes=('bn', 'in', 'ln'), correction=1), file, prefix=prefix)
    for settings, words in (
        (dict(scopes=('bn', 'in', 'ln')), 'trained with correction=1'),
        (dict(correction=1), r"trained with scopes=\('bn', 'in', 'ln'\)"),
    ):
        with pytest.raises(UsageError, match=f'cannot start Net: .*{words}'):
            start(Net(SwitchNorm, **settings), file, prefix=prefix)


def test_ratios_are_repeated_for_groups_of_channels(
    save: Callable, log: pytest.LogCaptureFixture
) -> None:
    source = Net(SwitchNorm)
    file = save(source)
    net = start(Net(SwitchNorm, num_ratio_groups=2), file)
    for name, value in source.state_dict().items():
        repeated = name.endswith(('mean_weight', 'var_weight'))
        assert net.state_dict()[name].equal(torch.stack([value] * 2) if repeated else value)
    assert 'are repeated for the groups of channels' in log.text
    assert 'child.sn, sn1.' in log.text


def test_batch_norm_starts_each_group_of_channels_at_its_ratio(save: Callable) -> None:
    net = start(Net(SwitchNorm, num_ratio_groups=2), save(Net(nn.BatchNorm2d)), batch_ratio=0.5)
    for ratios in net.sn1.importance_ratios():
        assert ratios.flatten().tolist() == pytest.approx([0.25, 0.25, 0.5] * 2)


def test_groups_that_do_not_divide_those_of_the_layer_are_refused(save: Callable) -> None:
    file = save(Net(SwitchNorm, num_ratio_groups=4))
    words = 'cannot start Net: the SN layer child.sn was trained with num_ratio_groups=4, which '
    with pytest.raises(UsageError, match=words):
        start(Net(SwitchNorm, num_ratio_groups=2), file)
