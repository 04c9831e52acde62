"""The suite has mistakes of every kind for every task, and the same ones each time."""

import random

import pytest

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
pytest.importorskip('mmpretrain')

from studies.mistakes.case import Case
from studies.mistakes.configs import TASKS
from studies.mistakes.drawn import drawn_cases, misspelt
from studies.mistakes.notes import NOTES
from studies.mistakes.suite import all_cases


@pytest.fixture(scope='module')
def cases() -> list[Case]:
    return [case for part in all_cases().values() for case in part]


def test_there_are_enough_and_each_is_there_once(cases: list[Case]) -> None:
    assert len(cases) >= 200
    assert len({case.name for case in cases}) == len(cases)
    for task in TASKS:
        assert sum(case.task == task for case in cases) >= 50
        assert any(case.task == task and case.tool == 'test.py' for case in cases)


def test_notes_are_about_cases(cases: list[Case]) -> None:
    assert NOTES.keys() <= {case.change for case in cases}


def test_the_seed_decides_what_is_drawn() -> None:
    names = [case.name for case in drawn_cases(0)]
    assert names == [case.name for case in drawn_cases(0)]
    assert names != [case.name for case in drawn_cases(1)]


def test_misspelt_words_are_close_to_the_word() -> None:
    rng = random.Random(0)
    for _ in range(50):
        wrong = misspelt('ResNet', rng)
        assert wrong != 'ResNet'
        assert wrong[0] == 'R'
        assert abs(len(wrong) - 6) <= 1
