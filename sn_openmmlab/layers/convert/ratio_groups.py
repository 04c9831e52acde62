"""Split the groups of channels that share importance ratios, without changing an output."""

from collections import OrderedDict
from collections.abc import Mapping

from torch import Tensor, nn

from sn_openmmlab.layers.choice import CHOICES, CONTROLS
from sn_openmmlab.layers.settings import layer_name
from sn_openmmlab.layers.switch_norm import SwitchNorm
from sn_openmmlab.ops.arguments import check_ratio_groups


def split_ratios(module: nn.Module, num_ratio_groups: int) -> nn.Module:
    """Give each of G groups of channels importance ratios of its own, in place (group SN, Sec. 2).

    The groups start from the ratios that their channels had, so the outputs stay the same. Then
    each group learns its own: a network that was trained with one group can be fine-tuned with
    more. The layers stay the same objects. λ and λ′ are new parameters, so make the optimizer
    afterwards.

    Args:
        module: any module, which may be an SN layer itself.
        num_ratio_groups: G, for all its SN layers.

    Returns:
        The same `module`.

    Raises:
        TypeError: if `num_ratio_groups` is no integer.
        ValueError: if it does not divide the channels of a layer, or is no multiple of the groups
            that a layer has, or there is no SN layer. Then nothing is changed.

    Example:
        ```python
        sn_openmmlab.split_ratios(model, 2)  # as if built with num_ratio_groups=2
        ```
    """
    layers = {name: x for name, x in module.named_modules() if isinstance(x, SwitchNorm)}
    if not layers:
        raise ValueError(f'{type(module).__name__} has no SN layer whose ratios could be split.')
    for name, layer in layers.items():
        try:
            check_ratio_groups(num_ratio_groups, layer.num_features)
        except ValueError as error:
            raise ValueError(f'{name}: {error}' if name else str(error)) from error
        _check_multiple(name, layer.num_ratio_groups, num_ratio_groups)
    for layer in layers.values():
        _split(layer, num_ratio_groups)
    return module


def split_ratio_weights(weights: Mapping[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """Return weights with the control parameters repeated for the groups of a network.

    It does for a state dict what `split_ratios` does for a network. All other weights stay, also
    those of layers that have as many groups as they were trained with.

    Args:
        weights: a state dict, with the names of `module`.
        module: the network that is to load it.

    Returns:
        A state dict, with what SN layers recorded in its metadata.

    Raises:
        ValueError: if a layer was trained with a number of groups that does not divide that of
            the network.

    Example:
        ```python
        model.load_state_dict(sn_openmmlab.split_ratio_weights(weights, model))
        ```
    """
    split = OrderedDict(weights)
    for name, layer in module.named_modules():
        if isinstance(layer, SwitchNorm):
            prefix = f'{name}.' if name else ''
            for part in (*CONTROLS, *CHOICES):
                if prefix + part in split:
                    old = split[prefix + part]
                    trained = len(old) if part in CHOICES or old.dim() > 1 else 1
                    _check_multiple(name, trained, layer.num_ratio_groups)
                    split[prefix + part] = _repeated(old, trained, layer.num_ratio_groups)
    if hasattr(weights, '_metadata'):
        split._metadata = weights._metadata
    return split


def _check_multiple(name: str, trained: int, wanted: int) -> None:
    if wanted % trained:
        raise ValueError(
            f'{layer_name(name)} was trained with num_ratio_groups={trained}, which cannot become '
            f'{wanted}: set num_ratio_groups to {trained} or to a multiple of it.'
        )


def _split(layer: SwitchNorm, groups: int) -> None:
    for part in CONTROLS:
        old = getattr(layer, part)
        new = _repeated(old.detach(), layer.num_ratio_groups, groups)
        setattr(layer, part, nn.Parameter(new, requires_grad=old.requires_grad))
    choices = [
        _repeated(getattr(layer, part), layer.num_ratio_groups, groups)
        for part in CHOICES
        if layer.is_sparse
    ]
    layer.num_ratio_groups = groups
    if choices:
        layer.choose(*choices)


def _repeated(table: Tensor, trained: int, groups: int) -> Tensor:
    """Return λ or a choice of `trained` groups for more groups, into which those are divided."""
    if groups == trained:
        return table
    is_control = table.is_floating_point()
    rows = table.reshape(trained, -1) if is_control else table
    return rows.repeat_interleave(groups // trained, dim=0)
