"""A step of a pipeline says on which image it fails."""

from typing import Any

import pytest

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.data.checked_step import CheckedStep, with_checked_steps

RESIZE = dict(type='mmcv.Resize', scale=(8, 8))


def test_image_and_step_are_named() -> None:
    step = CheckedStep(RESIZE)
    with pytest.raises(UsageError, match=r'the step Resize of a pipeline fails on a/1\.jpg: '):
        step(dict(img_path='a/1.jpg', img='no image'))


def test_step_without_a_fault_is_taken() -> None:
    assert CheckedStep(dict(type='mmcv.ToTensor', keys=[]))(dict(a=1)) == dict(a=1)


def test_error_of_the_users_own_step_keeps_its_traceback() -> None:
    class Own:
        def __call__(self, results: dict) -> dict:
            return results['absent']

    with pytest.raises(KeyError):
        CheckedStep(dict(type=Own))(dict(img_path='a.jpg'))


def test_steps_of_inner_datasets_are_checked() -> None:
    load = dict(type='CheckedLoading', step=dict(type='LoadImageFromFile'))
    inner: dict[str, Any] = dict(type='CocoDataset', pipeline=[load, RESIZE])
    outer = dict(type='MultiImageMixDataset', pipeline=[RESIZE], datasets=[inner])
    changed = with_checked_steps(outer)
    # Mixing steps ask for more images, by a method that a wrapper would hide.
    assert changed['pipeline'] == [RESIZE]
    assert changed['datasets'][0]['pipeline'] == [load, dict(type=CheckedStep, step=RESIZE)]
    assert inner['pipeline'] == [load, RESIZE]


def test_what_is_no_step_is_left() -> None:
    dataset = dict(type='A', pipeline='load')
    assert with_checked_steps(dataset) == dataset
    assert with_checked_steps(dict(type='A', pipeline=[None]))['pipeline'] == [None]
