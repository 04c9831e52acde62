"""What was found in a spoiled step, on one process and on all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

_MOST_IMAGES = 16


class Stage(IntEnum):
    """Where in a training step something is not finite, in the order of the step."""

    INPUT = 0
    LAYER = 1
    LOSS = 2
    STATISTIC = 3
    GRADIENT = 4
    UNKNOWN = 5


@dataclass(frozen=True)
class Finding:
    """The first place that is not finite.

    Attributes:
        stage: of the training step.
        order: within the stage, the first being 0.
        what: the place, as a sentence.
        images: the paths of the images that it happened on.
    """

    stage: Stage
    order: int
    what: str
    images: Sequence[str]


def first_of(findings: Sequence[Finding]) -> Finding:
    """Return the first place on all processes, with the images of each process it was found on."""
    first = min(findings, key=lambda finding: (finding.stage, finding.order))
    same = [x for x in findings if (x.stage, x.order) == (first.stage, first.order)]
    images = dict.fromkeys(image for finding in same for image in finding.images)
    return Finding(first.stage, first.order, first.what, list(images))


def describe(finding: Finding) -> str:
    """Return the place and the images as one clause."""
    names = finding.images
    if not names:
        return f'{finding.what} (the data give no paths of images)'
    more = f' and {len(names) - _MOST_IMAGES} more' if len(names) > _MOST_IMAGES else ''
    noun = 'the image' if len(names) == 1 else 'the images'
    return f'{finding.what}, on {noun} {", ".join(names[:_MOST_IMAGES])}{more}'
