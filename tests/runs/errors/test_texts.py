"""What an error says becomes a part of a sentence."""

import pytest
import torch
from mmengine.registry import HOOKS
from torch import nn

from sn_openmmlab.runs.errors.texts import text_of


def text(function: object) -> str:
    with pytest.raises(Exception) as error:
        function()
    return text_of(error.value)


def test_type_and_function_follow_the_text() -> None:
    said = text(lambda: nn.Linear(2, 3)(torch.zeros(1, 4)))
    assert said.startswith('mat1 and mat2 shapes cannot be multiplied (1x4 and 2x3)')
    assert said.endswith('(RuntimeError in forward of torch.nn.modules.linear)')


def test_missing_key() -> None:
    assert text(lambda: {}['mIou']).startswith("there is no 'mIou' (KeyError in ")


def test_error_without_a_text() -> None:
    def fail() -> None:
        raise AssertionError

    assert text(fail) == 'AssertionError in fail of tests.runs.errors.test_texts'


def test_unregistered_type_comes_with_the_most_similar_one() -> None:
    said = text(lambda: HOOKS.build(dict(type='EMAHok')))
    assert said.startswith('EMAHok is not in the ')
    assert said.endswith('(the most similar name there is EMAHook)')
    assert 'http' not in said


def test_long_text_is_cut() -> None:
    def fail() -> None:
        raise ValueError('x' * 1000)

    assert len(text(fail)) < 400
    assert '…' in text(fail)


def test_error_of_a_worker_process_is_its_last_line() -> None:
    def fail() -> None:
        raise KeyError(
            'Caught KeyError in DataLoader worker process 0.\nOriginal Traceback (most recent '
            "call last):\n  File\nKeyError: 'img'\n"
        )

    assert text(fail).startswith("KeyError: 'img' (KeyError in fail")
