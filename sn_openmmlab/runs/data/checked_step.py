"""Steps of a pipeline that say on which image they fail."""

from collections.abc import Mapping
from typing import Any

from mmengine.registry import TRANSFORMS

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.texts import text_of
from sn_openmmlab.runs.errors.traces import is_for_a_traceback


class CheckedStep:
    """A step of a pipeline that says on which image it fails.

    Our tools put it around the steps of a config that read no file; see `CheckedLoading` for those
    that do. In a worker process an error would lose what it is about.

    Args:
        step: the config of the step.

    Raises:
        UsageError: when called, if the step fails on what the config or the data give it. An error
            of the user's own modules passes unchanged.
    """

    def __init__(self, step: Mapping[str, Any]) -> None:
        self.step = TRANSFORMS.build(dict(step))

    def __call__(self, results: dict) -> dict | None:
        """Take the step."""
        file = results.get('img_path') if isinstance(results, Mapping) else None
        try:
            return self.step(results)
        except UsageError:
            raise
        except Exception as error:
            if is_for_a_traceback(error, skipped=1):
                raise
            image = f' on {file}' if isinstance(file, str) else ''
            raise UsageError(
                f'the step {type(self.step).__name__} of a pipeline fails{image}: '
                f'{text_of(error)}: correct the pipeline, or the image and its annotations.'
            ) from error

    def __repr__(self) -> str:
        return repr(self.step)


def with_checked_steps(part: Any) -> Any:
    """Return a copy of the config of a dataset in which its steps are each a `CheckedStep`.

    The pipelines of datasets that wrap others are left as they are, since such a dataset asks its
    steps for more images. So are steps that are no dicts, and those that are checked already.

    Args:
        part: the config of a dataset, or of several.
    """
    kind: Any = type(part)
    if isinstance(part, list | tuple):
        return kind([with_checked_steps(item) for item in part])
    if not isinstance(part, Mapping):
        return part
    inner = {key: with_checked_steps(part[key]) for key in ('dataset', 'datasets') if key in part}
    steps = part.get('pipeline')
    if not inner and isinstance(steps, list | tuple):
        inner = dict(pipeline=[_checked(step) for step in steps])
    return kind({**part, **inner})


def _checked(step: Any) -> Any:
    if not isinstance(step, Mapping) or 'Checked' in str(step.get('type')):
        return step
    return dict(type=CheckedStep, step=step)
