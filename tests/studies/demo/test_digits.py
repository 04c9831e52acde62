"""The digits are scikit-learn's, and no form is shared between train and val."""

import re
from difflib import SequenceMatcher

import numpy as np
import pytest
from sklearn.datasets import load_digits

from studies.demo.digits import FORM_STARTS, VAL_START, load_digit_sets

TARGET = ''.join(str(digit) for digit in load_digits().target)
# Where every form goes over from counting to its irregular part, in full forms at their row 20.
TURN = '0123456789095565098984177351'


@pytest.fixture(scope='module')
def digit_sets():
    return load_digit_sets()


def test_splits_are_disjoint_contiguous_and_complete(digit_sets):
    train, val = digit_sets['train'].rows, digit_sets['val'].rows
    assert train.tolist() == list(range(len(train)))
    assert val.tolist() == list(range(len(train), 1797))
    assert (len(train), len(val)) == (1415, 382)


def test_digits_are_those_of_scikit_learn(digit_sets):
    data = load_digits()
    for digits in digit_sets.values():
        np.testing.assert_array_equal(digits.images * 16, data.images[digits.rows])
        np.testing.assert_array_equal(digits.labels, data.target[digits.rows])


def test_the_split_lies_where_a_whole_form_begins():
    form = TARGET[:130]
    assert TARGET[VAL_START : VAL_START + 130] == form
    assert TARGET[VAL_START - 130 : VAL_START].endswith('82257954884908')
    assert VAL_START in FORM_STARTS


def test_there_are_14_forms_one_after_the_other():
    assert len(re.findall(TURN, TARGET)) == len(FORM_STARTS) == 14
    form = TARGET[:130]
    for start, end in zip(FORM_STARTS, [*FORM_STARTS[1:], 1797], strict=True):
        matcher = SequenceMatcher(None, form, TARGET[start:end], autojunk=False)
        assert 122 <= end - start <= 130
        assert matcher.ratio() > 0.96
        assert -10 <= TARGET.index(TURN, start) - start - 20 <= 0


def test_both_splits_hold_every_digit_about_equally(digit_sets):
    for digits in digit_sets.values():
        counts = np.bincount(digits.labels, minlength=10)
        assert counts.min() > 0.08 * len(digits.labels)
