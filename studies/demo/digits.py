"""Handwritten digits and the split of their writers into train and val.

Known facts: scikit-learn's ``load_digits`` is the test part of the UCI "optical recognition of
handwritten digits" set, 1797 digits of 8x8 pixels from writers who all copied the same printed
form of 130 digits (13 of each class). Its description counts 13 writers, none of whom is named.

Inferred from ``target`` alone: the rows are in the order of the forms. The sequence of
a whole form, ``012345678901234567890123456789 0955650989841773510022...``, comes 14 times in
a row, at the rows in ``FORM_STARTS``. Nine of the 14 forms are complete or differ in one digit; the
others lack 2 to 8 digits. So there is one form more than writers in the description: one writer
may have filled in two. The data do not say which: of a digit's three nearest neighbours of its
class, 32 to 65 % lie in its own form, and at most 14 % in any one other form.

The split therefore keeps whole forms together, the last three for val. The two forms on either side
of the split share few neighbours (6 % one way, 2 % the other), so they are unlikely to be by one
writer. Forms further apart may still share a writer, but nothing in the data suggests it.
"""

from dataclasses import dataclass

import numpy as np

FORM_STARTS = (0, 130, 256, 386, 516, 646, 776, 906, 1029, 1157, 1287, 1415, 1545, 1667)
VAL_FORMS = 3
VAL_START = FORM_STARTS[-VAL_FORMS]


@dataclass(frozen=True)
class DigitSet:
    """Digits of some writers.

    Attributes:
        rows: Rows in the file order of ``load_digits``, shape (N,), int.
        images: Ink from 0 (paper) to 1 (full), shape (N, 8, 8), float32.
        labels: Which digit it is, 0 to 9, shape (N,), int.
    """

    rows: np.ndarray
    images: np.ndarray
    labels: np.ndarray


def load_digit_sets() -> dict[str, DigitSet]:
    """Load the digits as ``{"train": ..., "val": ...}``, with no form shared between the two.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    # sklearn takes a second to import, and most importers only need the class names.
    from sklearn.datasets import load_digits

    data = load_digits()
    rows = np.arange(len(data.target))
    images = (data.images / 16).astype(np.float32)
    splits = {'train': rows[:VAL_START], 'val': rows[VAL_START:]}
    return {name: DigitSet(part, images[part], data.target[part]) for name, part in splits.items()}
