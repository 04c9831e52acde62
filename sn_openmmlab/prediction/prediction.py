"""What a model predicts on an image, in the same form for all toolboxes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Prediction:
    """What is written for one image.

    Attributes:
        picture: the image with the prediction drawn on it, RGB, (height, width, 3), uint8.
        record: the prediction as it goes into a JSON file.
        label_map: for a PNG, (height, width) of uint8 or uint16, or RGB; None if there is no map.
    """

    picture: np.ndarray
    record: dict[str, Any]
    label_map: np.ndarray | None = None


# Takes the path of an image.
Predictor = Callable[[str], Prediction]
