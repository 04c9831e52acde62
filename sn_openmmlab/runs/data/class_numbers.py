"""The check that the heads of a detector or segmenter have the classes of its data."""

from collections.abc import Mapping, Sequence
from typing import Any

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError, warn_user

# The heads that a toolbox trains on the classes of the data set, by the last part of their key.
_HEADS = {
    'mmdet': ('bbox_head', 'mask_head'),
    'mmseg': ('decode_head', 'auxiliary_head'),
}


def check_class_numbers(
    toolbox: str, loader: str, classes: Sequence[str] | None, model: Mapping[str, Any] | None
) -> None:
    """Raise UsageError if a head has fewer classes than its data; warn if it has more.

    With fewer, the loss fails, or takes the last classes for others. With more, some outputs are
    never trained.

    Args:
        toolbox: of the model.
        loader: the data loader of the training.
        classes: the names of the classes of its data set; None or empty if it has none.
        model: the config of the model, if there is one.
    """
    if not classes or isinstance(classes, str):
        return
    # Its head takes words in place of classes.
    if 'language_model' in (model or {}):
        return
    number = len(classes)
    for place, part in walk(model, 'model'):
        outputs = part.get('num_classes')
        if not _is_head(toolbox, place) or not isinstance(outputs, int) or outputs == number:
            continue
        if _has_own_classes(part, number):
            continue
        fault = (
            f'{place}.num_classes is {outputs}, but the data set of the {loader} has {number} '
            f'{"class" if number == 1 else "classes"}'
        )
        if outputs < number:
            raise UsageError(f'{fault}: set {place}.num_classes={number}.')
        warn_user(f'{fault}: the others are never trained; set {place}.num_classes={number}.')


def _has_own_classes(head: Mapping[str, Any], number: int) -> bool:
    """Return whether a head is right to have other classes than its data."""
    channels = head.get('out_channels') or head['num_classes']
    # One output tells two classes apart; STDC has a head of boundaries.
    one_for_two = channels == 1 and number == 2 and 'loss_decode' in head
    return one_for_two or 'boundary_threshold' in head or bool(head.get('class_agnostic'))


def _is_head(toolbox: str, place: str) -> bool:
    names = [name for name in place.split('.') if not name.isdigit()]
    return names[-1] in _HEADS.get(toolbox, ())
