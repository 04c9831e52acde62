"""What becomes of a sparse layer, against torch's norms on the same input."""

import pytest
import torch
from torch import nn

from sn_openmmlab import SwitchNorm, sparsify
from sn_openmmlab.inference.export.exported_norms import build_with_exported_norms
from sn_openmmlab.inference.export.layers import exported_layers
from sn_openmmlab.inference.export.trial import Trial, try_model
from tests.sparse_models import spread

pytest.importorskip('mmdet')
SCOPES = ('in', 'gn', 'ln', 'bn')
SIZES = {2: (), 3: (5,), 4: (5, 3), 5: (2, 3, 3)}


def make(mean: str, var: str, **options: object) -> SwitchNorm:
    layer = spread(SwitchNorm(4, **{'scopes': SCOPES, 'num_groups': 2, **options}))
    for name, scope in (('mean', mean), ('var', var)):
        control = getattr(layer, f'{name}_weight')
        nn.init.constant_(control[..., layer.scopes.index(scope)], 9)
    return sparsify(layer).eval()


def exported(layer: SwitchNorm, x: torch.Tensor) -> tuple[nn.Module, str]:
    """Return what takes the place of a layer, with its weights, and why it stays SN."""
    model = nn.ModuleDict({'n': layer})
    (found,) = exported_layers(model, Trial(inputs={'n': x}))
    assert found.stays == (found.norm['type'] == 'SN')
    built = build_with_exported_norms(
        lambda **model: nn.ModuleDict({'n': nn.Identity()}), {'n': found.norm}
    )
    built.load_state_dict(found.weights)
    return built['n'].eval(), found.reason


@pytest.mark.parametrize('dims', SIZES)
@pytest.mark.parametrize('scope', SCOPES)
def test_layer_of_one_scope_becomes_a_norm_of_torch(scope: str, dims: int) -> None:
    x = 3 * torch.randn(2, 4, *SIZES[dims]) + 1
    layer = make(scope, scope)

    found, reason = exported(layer, x)

    torch.testing.assert_close(found(x), layer(x), rtol=1e-5, atol=1e-5)
    if scope == 'in' and dims == 2:
        assert isinstance(found, SwitchNorm) and 'no single value' in reason
        return
    kinds = {'in': nn.modules.instancenorm._InstanceNorm, 'bn': nn.modules.batchnorm._BatchNorm}
    assert isinstance(found, kinds.get(scope, nn.GroupNorm))
    assert not isinstance(found, SwitchNorm)
    if scope in ('gn', 'ln'):
        assert found.num_groups == {'gn': 2, 'ln': 1}[scope]


@pytest.mark.parametrize(
    ('layer', 'reason'),
    [
        (('in', 'bn', {}), 'mixes in and bn'),
        (('ln', 'ln', {'correction': 1}), 'correction=1'),
        (('bn', 'bn', {'track_running_stats': False}), 'no running statistics'),
    ],
)
def test_layer_that_torch_has_no_norm_for_stays_sn(layer: tuple, reason: str) -> None:
    mean, var, options = layer
    layer = make(mean, var, **options)
    x = torch.randn(2, 4, 5, 3)

    found, said = exported(layer, x)

    assert reason in said
    assert isinstance(found, SwitchNorm) and found.is_sparse
    torch.testing.assert_close(found(x), layer(x))


def test_instance_norm_of_one_pixel_stays_sn() -> None:
    layer, x = make('in', 'in'), torch.randn(1, 4, 1, 1)
    found, said = exported(layer, x)
    assert 'no single value, as in one pixel' in said
    assert torch.equal(found(x), layer(x))


def test_groups_of_ratios_that_choose_differently_stay_sn() -> None:
    layer = SwitchNorm(4, num_ratio_groups=2)
    layer.choose(torch.tensor([0, 1]), torch.tensor([0, 1]))
    x = torch.randn(2, 4, 5, 3)
    found, said = exported(layer.eval(), x)
    assert 'mixes in and ln' in said
    torch.testing.assert_close(found(x), layer(x))


def test_batch_norm_of_the_authors_code_is_exported() -> None:
    assert isinstance(
        exported(make('bn', 'bn', correction=1), torch.randn(2, 4, 5, 3))[0], nn.BatchNorm2d
    )


class Net(nn.Module):
    """Convolutions with an SN layer behind each, and all ways in which one must not be folded."""

    def __init__(self) -> None:
        super().__init__()
        names = ('plain', 'biased', 'residual', 'shared', 'tied', 'tied_too', 'pooled', 'late')
        self.convs = nn.ModuleDict(
            {name: nn.Conv2d(3, 3, 3, padding=1, bias=name == 'biased') for name in names}
        )
        self.convs['tied_too'].weight = self.convs['tied'].weight
        norms = (*names, 'shared_too')
        self.norms = nn.ModuleDict(
            {name: sparsify(SwitchNorm(3, scopes=('bn',))).eval() for name in norms}
        )

    def block(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return self.norms[name](self.convs[name](x)).relu_()

    def test_step(self, data: dict) -> list:
        x = data['inputs'][0][None, :, :8, :8].float()
        x = self.block('biased', self.block('plain', x))
        y = self.convs['residual'](x)
        x = self.norms['residual'](y) + y
        y = self.convs['shared'](x)
        x = self.norms['shared'](y) + self.norms['shared_too'](y)
        x = self.block('tied_too', self.block('tied', x))
        x = self.norms['pooled'](nn.functional.avg_pool2d(self.convs['pooled'](x), 2))
        # The last one's first call is of another input.
        return self.norms['late'](x) + self.block('late', x)


def test_only_a_convolution_that_nothing_else_reads_is_folded() -> None:
    assert try_model(Net(), 'mmdet').folds == {
        name: f'convs.{name[6:]}'
        for name in ('norms.plain', 'norms.biased', 'norms.tied', 'norms.tied_too')
    }
    becomes = {layer.name[6:]: layer for layer in exported_layers(Net(), try_model(Net(), 'mmdet'))}
    assert becomes['plain'].becomes == 'folded into convs.plain'
    for name in ('tied', 'residual'):
        assert becomes[name].becomes == 'BatchNorm2d'
    assert 'shared' in becomes['tied'].reason
