"""The true and the predicted class of an image, written above it."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from mmengine.structures import BaseDataElement
from torch import Tensor

from sn_openmmlab.analysis.colors import LINES

RIGHT, WRONG = LINES[2], LINES[3]
_LONGEST = 18


def draw_labels(axes: Axes, sample: BaseDataElement, classes: Sequence[str]) -> None:
    """Write the predicted class above an image, green if it is right and else red, with the truth.

    Args:
        axes: shows the image already.
        sample: of MMPretrain, with ``pred_label``, and with ``gt_label`` and ``pred_score`` if
            there are any; each label is a tensor of one class or, with several labels, of many.
        classes: the names of the labels; `class 7` stands for a missing name.
    """
    predicted = _names(sample.pred_label, classes)
    labels = sample.pred_label.tolist()
    if 'pred_score' in sample and len(labels) == 1:
        predicted += f': {sample.pred_score[labels[0]]:.2f}'
    if 'gt_label' not in sample:
        axes.set_title(predicted, fontsize=9)
    elif sorted(labels) == sorted(sample.gt_label.tolist()):
        axes.set_title(predicted, fontsize=9, color=RIGHT)
    else:
        truth = _names(sample.gt_label, classes)
        axes.set_title(f'{predicted}\nnot {truth}', fontsize=9, color=WRONG)


def _names(labels: Tensor, classes: Sequence[str]) -> str:
    names = [classes[i] if i < len(classes) else f'class {i}' for i in labels.tolist()]
    # Names of ImageNet list synonyms.
    text = ', '.join(name.partition(',')[0] for name in names) or 'none'
    return text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'
