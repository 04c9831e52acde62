"""Which layers of a model a checkpoint fills."""

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from sn_openmmlab.checkpoints.names import few, shown
from sn_openmmlab.checkpoints.plans.norm_shapes import Shape
from sn_openmmlab.checkpoints.trial_loading import LoadedLayer, try_loading
from sn_openmmlab.checkpoints.weight_names import joined
from sn_openmmlab.layers.names import NORMS
from sn_openmmlab.layers.switch_norm import SwitchNorm


class Fit:
    """Which layers of a module some weights would fill. The module stays as it is.

    Args:
        module: The module, which may be wrapped for distribution or test-time augmentation.
        state: The weights by name, as MMEngine would load them.

    Attributes:
        switch_norms: The SN layers by name.
        other_norms: All other norm layers by name.
        weighted: The convolutions and linear layers by name.
        misfits: Name of a weight → its shape in the file and in the module, if these differ.
        missing: The names of all weights of the module that the file lacks.
        unexpected: The names of all weights of the file that the module lacks.

    Raises:
        UsageError: A layer refuses its weights.
    """

    def __init__(self, module: nn.Module, state: Mapping[str, Tensor]) -> None:
        self.module, self.state = module, state
        trial = try_loading(module, state)
        self._layers = trial.layers
        self.switch_norms = self._of_kind(lambda layer: isinstance(layer, SwitchNorm))
        self.other_norms = self._of_kind(_is_other_norm)
        self.weighted = self._of_kind(_is_weighted)
        self.misfits: dict[str, tuple[Shape, Shape]] = {
            joined(layer.name, part): shapes
            for layer in self._layers
            for part, shapes in layer.misfits.items()
        }
        self.missing = [joined(layer.name, n) for layer in self._layers for n in layer.missing]
        self.unexpected = trial.unexpected

    @property
    def unfilled(self) -> list[str]:
        """The names of the SN layers that do not get all their weights."""
        return _unfilled(self.switch_norms)

    @property
    def fills_nothing(self) -> bool:
        """Whether the module has weights and gets none of them."""
        return bool(self._layers) and all(layer.untouched for layer in self._layers)

    @property
    def learned(self) -> dict[str, SwitchNorm]:
        """The SN layers whose λ the file has, in whatever shape."""
        layers = self.switch_norms.items()
        return {name: layer.module for name, layer in layers if 'mean_weight' not in layer.missing}

    def line(self) -> str:
        """Return in words how many layers are filled, and which are not."""
        kinds = {
            'SN layers': self.switch_norms,
            'other norms': self.other_norms,
            'convolutions and linear layers': self.weighted,
        }
        counts = [
            f'{len(layers) - len(_unfilled(layers))} of {len(layers)} {kind}'
            for kind, layers in kinds.items()
            if layers
        ]
        left = [
            f'{shown(name)} ({"another shape" if layer.misfits else "not in the file"})'
            for layers in kinds.values()
            for name, layer in layers.items()
            if not layer.filled
        ]
        rest = f'; not {few(left, 5)}' if left else ''
        shown_counts = ' and '.join(filter(None, [', '.join(counts[:-1]), *counts[-1:]]))
        return f'{shown_counts or "no layer"}{rest}'

    def _of_kind(self, is_kind: Callable[[nn.Module], bool]) -> dict[str, LoadedLayer]:
        """Return the layers of a kind; one with several names is filled under any of them."""
        found: dict[int, LoadedLayer] = {}
        for layer in self._layers:
            key = id(layer.module)
            if is_kind(layer.module) and (key not in found or layer.filled):
                found[key] = layer
        return {layer.name: layer for layer in found.values()}


def _unfilled(layers: Mapping[str, LoadedLayer]) -> list[str]:
    return [name for name, layer in layers.items() if not layer.filled]


def _is_other_norm(module: nn.Module) -> bool:
    return isinstance(module, NORMS) and not isinstance(module, SwitchNorm)


def _is_weighted(module: nn.Module) -> bool:
    """Return whether it is a convolution or a linear layer, of torch or of a toolbox."""
    weight = module._parameters.get('weight')
    other = isinstance(module, (*NORMS, nn.Embedding, nn.EmbeddingBag))
    return weight is not None and weight.dim() > 1 and not other
