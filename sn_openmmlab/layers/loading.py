"""Whether weights that a layer is about to load are its own."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from sn_openmmlab.errors import WeightsError
from sn_openmmlab.layers.settings import layer_name, mismatch, read_settings, settings_of

if TYPE_CHECKING:
    from sn_openmmlab.layers.switch_norm import SwitchNorm

_CONTROLS = ('mean_weight', 'var_weight')
_NORM = ('weight', 'bias', 'running_mean', 'running_var')


def check_weights(
    layer: 'SwitchNorm', state_dict: Mapping[str, Any], prefix: str, record: Mapping[str, Any]
) -> None:
    """Raise where the weights of ``layer`` were trained as those of another, or warn.

    A warning, since some load a part of the weights on purpose: γ, β or running statistics come
    without λ, as from BatchNorm. Nothing is checked where no weight has the layer's name.

    Args:
        layer: that loads them.
        state_dict: the weights.
        prefix: with which the names of the layer's weights start.
        record: the layer's metadata in the state dict, empty where it has none.

    Raises:
        WeightsError: λ mixes other scopes than the layer does, in another order or in another
            number, or the layer computes their moments otherwise.
    """
    given = [name for name in _CONTROLS if prefix + name in state_dict]
    if given:
        _check_settings(layer, prefix[:-1], record)
        for name in given:
            _check_length(layer, prefix[:-1], state_dict[prefix + name])
    elif any(prefix + name in state_dict for name in _NORM) and _has_controls(layer):
        warnings.warn(
            'Weights without the importance ratios of SwitchNorm (mean_weight, var_weight) were '
            'loaded into SN layers, which keep the ratios that they had. To start from BatchNorm, '
            "use init_cfg=dict(type='SNPretrained', checkpoint=...) in the config, or load the "
            'weights before convert_batch_norm(model).',
            stacklevel=1,
        )


def _check_settings(layer: 'SwitchNorm', name: str, record: Mapping[str, Any]) -> None:
    trained = read_settings(record)
    fault = None if trained is None else mismatch(name, trained, settings_of(layer))
    if fault:
        raise WeightsError(f'The weights do not fit: {fault}')


def _check_length(layer: 'SwitchNorm', name: str, control: Any) -> None:
    if isinstance(control, Tensor) and control.shape != (len(layer.scopes),):
        raise WeightsError(
            f'The weights do not fit: {layer_name(name)} was trained with {control.numel()} '
            f'scopes, but is built with {len(layer.scopes)}, scopes={layer.scopes}: set the scopes '
            'that it was trained with in its norm_cfg.'
        )


def _has_controls(layer: 'SwitchNorm') -> bool:
    """Whether λ has its usual name, which a parametrization or pruning changes."""
    return all(name in layer._parameters for name in _CONTROLS)
