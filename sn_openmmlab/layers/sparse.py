"""Sparse SN: every layer chooses one scope for its means and one for its variances."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from sn_openmmlab.layers.choice import CHOICES
from sn_openmmlab.layers.switch_norm import SwitchNorm


def sparsify(module: nn.Module) -> nn.Module:
    """Make every SN layer of `module` use only the scopes with the largest ratios, in place.

    This is the sparse SN of the paper (Sec. 2, "Variants of SN"): the arg-max of λ chooses the
    scope of the means, that of λ′ the scope of the variances. From then on the ratios are exactly 1
    and 0, in training too; γ, β and everything else go on learning. λ and λ′ stay in the model and
    in its optimizer, without effect. In evaluation a layer computes only the statistics that it
    uses; if that is `'bn'` alone, none.

    The choice is in the state dict. A layer that loads it becomes sparse. A layer that is sparse
    already keeps its choice. A tie goes to the scope that comes first in `scopes`.

    Args:
        module: any module, which may be an SN layer itself.

    Returns:
        The same `module`.

    Raises:
        ValueError: if it has no SN layer, or λ or λ′ of a layer are not finite. Nothing is changed
            then.

    Example:
        ```python
        sn_openmmlab.sparsify(model)  # a trained model
        ...  # fine-tune
        ```
    """
    layers = _layers(module)
    if not layers:
        raise ValueError(f'{type(module).__name__} has no SN layer to make sparse.')
    for name, layer in layers.items():
        # In a sparse layer they do not matter.
        controls = () if layer.is_sparse else (layer.mean_weight, layer.var_weight)
        if not all(bool(control.isfinite().all()) for control in controls):
            place = f' of {name}' if name else ''
            raise ValueError(
                f'the importance ratios{place} are not finite: the training went wrong before.'
            )
    for layer in layers.values():
        if not layer.is_sparse:
            layer.choose(layer.mean_weight.argmax(-1), layer.var_weight.argmax(-1))
    return module


def copy_choices(source: nn.Module, target: nn.Module) -> None:
    """Give the SN layers of `target` the choices of the sparse layers of `source`, by name.

    Layers of `target` whose namesake is dense stay as they are.

    Args:
        source: a module.
        target: a module with the same SN layers, such as the average of its weights.

    Raises:
        ValueError: if a layer of `target` has other scopes or another number of groups of ratios.
    """
    copies = _layers(target)
    for name, layer in _layers(source).items():
        if layer.is_sparse:
            copies[name].choose(layer.mean_choice, layer.var_choice)


@contextmanager
def choices_restored(module: nn.Module) -> Iterator[None]:
    """Make the SN layers of `module` as sparse or dense again as they were on entry."""
    layers = _layers(module).values()
    before = [(layer._chosen, *(layer._buffers.get(name) for name in CHOICES)) for layer in layers]
    try:
        yield
    finally:
        for layer, (chosen, *choices) in zip(layers, before, strict=True):
            layer._chosen = chosen
            layer._buffers.update(zip(CHOICES, choices, strict=True))


def _layers(module: nn.Module) -> dict[str, SwitchNorm]:
    return {name: x for name, x in module.named_modules() if isinstance(x, SwitchNorm)}
