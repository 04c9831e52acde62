"""Check that weights were trained with the settings of the layer that is about to load them."""

import warnings
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from sn_openmmlab.errors import WeightsError
from sn_openmmlab.layers.choice import CONTROLS
from sn_openmmlab.layers.settings import MixSettings, layer_name, mismatch, read_settings

_NORM = ('weight', 'bias', 'running_mean', 'running_var')


def check_weights(
    layer: nn.Module,
    settings: MixSettings,
    state_dict: Mapping[str, Any],
    prefix: str,
    record: Mapping[str, Any],
) -> None:
    """Raise if the weights of `layer` were trained with other settings; warn if λ is missing.

    It is only a warning because some users load γ, β or running statistics without λ on purpose,
    for example from BatchNorm. Nothing is checked if no weight has the layer's name.

    Args:
        layer: the layer that loads the weights.
        settings: the layer's settings.
        state_dict: the weights.
        prefix: the start of the names of the layer's weights.
        record: the layer's metadata in the state dict, empty where it has none.

    Raises:
        WeightsError: if λ mixes other scopes than the layer does, or in another order, or if the
            layer computes the moments of a scope in another way or has other groups of ratios.
    """
    given = [name for name in CONTROLS if prefix + name in state_dict]
    if given:
        _check_settings(settings, prefix[:-1], record)
        for name in given:
            _check_shape(layer, settings.scopes, prefix[:-1], state_dict[prefix + name])
    elif any(prefix + name in state_dict for name in _NORM) and _has_controls(layer):
        warnings.warn(
            'Weights without the importance ratios of SwitchNorm (mean_weight, var_weight) were '
            'loaded into SN layers, which keep the ratios that they had. To start from BatchNorm, '
            "use init_cfg=dict(type='SNPretrained', checkpoint=...) in the config, or load the "
            'weights before convert_batch_norm(model).',
            stacklevel=1,
        )


def _check_settings(settings: MixSettings, name: str, record: Mapping[str, Any]) -> None:
    trained = read_settings(record)
    fault = None if trained is None else mismatch(name, trained, settings)
    if fault:
        raise WeightsError(f'The weights do not fit: {fault}')


def _check_shape(layer: nn.Module, scopes: tuple[str, ...], name: str, control: Any) -> None:
    if not isinstance(control, Tensor) or control.dim() == 0:
        return
    fault = 'The weights do not fit: ' + layer_name(name)
    trained, built = control.shape[-1], len(scopes)
    if trained != built:
        raise WeightsError(
            f'{fault} was trained with {trained} scopes, but is built with {built}, '
            f'scopes={scopes}: set the scopes that it was trained with in its norm_cfg.'
        )
    trained, built = (len(control) if control.dim() == 2 else 1), layer.num_ratio_groups
    if trained != built:
        raise WeightsError(
            f'{fault} was trained with num_ratio_groups={trained}, but is built with {built}: set '
            f'num_ratio_groups={trained} in its norm_cfg. How more groups start from one is in '
            'docs/guides/variants.md.'
        )


def _has_controls(layer: nn.Module) -> bool:
    """Return whether λ has its usual name, which a parametrization or pruning changes."""
    return all(name in layer._parameters for name in CONTROLS)
