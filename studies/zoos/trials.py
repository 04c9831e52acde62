"""A training step of a model of a zoo with SN at two images and at one, beside its own norms."""

from collections.abc import Iterable, Iterator

from studies.zoos.reasons import reason_of
from studies.zoos.records import Record
from studies.zoos.sample import size_of
from studies.zoos.steps import Step, train_step


def try_all(configs: Iterable[tuple[str, str]]) -> Iterator[Record]:
    """Yield the record of each config, which is given as its toolbox and its path."""
    for toolbox, path in configs:
        yield try_config(toolbox, path)


def try_config(toolbox: str, path: str) -> Record:
    """Train the model of a config with SN for a step at two images, and for one at one.

    The record has ``toolbox``, ``config``, ``size``, and for each number of images a dict with
    either ``fails``, why the step stops with an error, or the attributes of `Step`, of which empty
    lists are left out. Where the step fails or does not reach all layers, ``own`` is the same for
    the model with its own norms, which is BatchNorm in nearly all.
    """
    size = size_of(toolbox, path)
    record: Record = {'toolbox': toolbox, 'config': path, 'size': size}
    for images in (2, 1):
        result = _try(toolbox, path, 'SN', images, size)
        if not _is_clean(result):
            result['own'] = _try(toolbox, path, None, images, size)
        record[str(images)] = result
    return record


def _try(toolbox: str, path: str, norm: str | None, images: int, size: int) -> Record:
    try:
        step = train_step(toolbox, path, norm, images, size)
    except Exception as error:
        return {'fails': reason_of(error)}
    return _as_record(step)


def _as_record(step: Step) -> Record:
    shown = {**step._asdict(), 'loss': float(f'{step.loss:.4g}')}
    return {name: value for name, value in shown.items() if value != []}


def _is_clean(result: Record) -> bool:
    return result.get('finite', False) and not result.keys() & {'unreached', 'fixed'}
