"""Sparse SN: every layer chooses one scope for its means and one for its variances."""

from torch import nn

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
    layers = {name: x for name, x in module.named_modules() if isinstance(x, SwitchNorm)}
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
