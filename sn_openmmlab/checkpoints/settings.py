"""The settings that the SN layers of a checkpoint were trained with, if it records them."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sn_openmmlab.checkpoints.files.provenance import recorded_scopes
from sn_openmmlab.checkpoints.files.stored_config import configured_settings
from sn_openmmlab.checkpoints.plans.layouts import recorded_layout
from sn_openmmlab.checkpoints.plans.norm_shapes import AUTHORS_SCOPES
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.settings import MixSettings, mismatch, recorded_settings, settings_of
from sn_openmmlab.layers.switch_norm import SwitchNorm


class TrainedSettings:
    """The settings that a checkpoint was trained with.

    Each layer records its own. For a layer that did not, they come from the config that MMEngine
    stores in the file. For a converted file, the scopes come from the converter's note.

    Args:
        checkpoint: The checkpoint as it was read.
        weights: The weights to load, by their names in the model.

    Attributes:
        of_authors: Whether the file was converted from one of the authors'. They trained with
            `correction=1`, which these files do not record.
    """

    def __init__(self, checkpoint: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
        self._weights = weights
        self._by_layer = recorded_settings(weights)
        self._of_any = configured_settings(checkpoint)
        scopes = recorded_scopes(checkpoint)
        if scopes and not self._of_any:
            self._of_any = [MixSettings(scopes, None, None)]
        layout = recorded_layout(checkpoint)
        self.of_authors = layout is not None and layout.of_authors

    def check(self, layers: Mapping[str, SwitchNorm]) -> None:
        """Raise UsageError if a layer has other settings than its weights were trained with.

        Args:
            layers: The layers that get λ from the file, by name.
        """
        for name, layer in layers.items():
            self._check(name, layer)

    def scopes_of(self, name: str, number: int) -> tuple[str, ...] | None:
        """Return which scopes the ratios of a layer belong to, or None where nothing tells it.

        A file that says nothing at all is taken for one of the authors', who mixed `in`, `ln` and
        `bn`, or `in` and `ln`.

        Args:
            name: Of the layer, as its weights are named in the file.
            number: How many ratios it has.
        """
        known = self._by_layer.get(name)
        candidates = {s.scopes for s in ([known] if known else self._of_any)}
        if not candidates and number in AUTHORS_SCOPES:
            scopes = AUTHORS_SCOPES[number]
            # A layer with `bn` has running statistics.
            if ('bn' in scopes) == (f'{name}.running_mean' in self._weights):
                candidates = {scopes}
        fitting = [scopes for scopes in candidates if len(scopes) == number]
        return fitting[0] if len(fitting) == 1 else None

    def _check(self, name: str, layer: SwitchNorm) -> None:
        known = self._by_layer.get(name)
        candidates = [known] if known else self._of_any
        faults = [mismatch(name, trained, settings_of(layer)) for trained in candidates]
        if faults and all(faults):
            # Settings with the same scopes give the most helpful message.
            same = [trained.scopes == layer.scopes for trained in candidates]
            raise UsageError(faults[same.index(True) if True in same else 0])
        control = self._weights.get(f'{name}.mean_weight')
        # The module may have renamed it.
        number = len(layer.scopes) if control is None or control.dim() == 0 else control.shape[-1]
        if number != len(layer.scopes):
            raise UsageError(
                f'it mixes {number} scopes, but the SN layer {name} mixes '
                f'{", ".join(layer.scopes)}: set the scopes that it was trained with in its '
                'norm_cfg.'
            )


def advise_correction(layers: Mapping[str, SwitchNorm]) -> str | None:
    """Return a warning about layers that get weights of the authors, or None if all are right."""
    other = [name for name, layer in layers.items() if layer.correction == 0]
    if not other:
        return None
    return (
        f'The authors trained their weights with correction=1, but {len(other)} SN layers that get '
        f'them have correction=0, such as {other[0]}: set correction=1 in their norm_cfg. '
        '(docs/guides/weights.md says how much it matters.)'
    )
