"""Whether the weights of a checkpoint are those of a model."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.switch_norm import SwitchNorm


def check_fit(model: nn.Module, checkpoint: Mapping[str, Any], source: str) -> None:
    """Raise UsageError where an evaluation would run on weights that were never trained.

    mmengine only warns of missing keys, and the rest of a network of another norm loads: its
    Switchable Normalization layers would stay as they were made.

    Args:
        model: bare, or wrapped for distribution or test-time augmentation.
        checkpoint: what :func:`~sn_openmmlab.checkpoints.files.safe_loading.read_checkpoint`
            gives.
        source: the name of the checkpoint in the message.

    Raises:
        UsageError: no weight of the checkpoint has a name of the model's, or it lacks the weights
            of Switchable Normalization layers.
    """
    names = _bare(checkpoint.get('state_dict', checkpoint))
    if not names & _bare(model.state_dict()):
        raise UsageError(f'{source} holds none of the weights of this model.')
    missing = [
        name
        for name, module in model.named_modules()
        if isinstance(module, SwitchNorm) and not _bare([f'{name}.mean_weight']) & names
    ]
    if missing:
        raise UsageError(
            f'{source} lacks the weights of {len(missing)} SwitchNorm layers, as of {missing[0]}: '
            'it belongs to a network of another norm.'
        )


def _bare(names: Iterable[str]) -> set[str]:
    return {name.removeprefix('module.') for name in names}
