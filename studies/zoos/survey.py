"""Which configs of a zoo build as they are, and which build with their norms replaced by SN."""

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from mmengine.config import Config
from torch import nn

from sn_openmmlab.analysis.norm_changes import norm_changes
from sn_openmmlab.runs.norm_swap import replace_norms
from studies.zoos.building import build, kind, replaceable, switchable
from studies.zoos.configs import find_configs, read_zoo_config
from studies.zoos.reasons import reason_of
from studies.zoos.records import Record

# Keys of a model that change none of its layers but the last ones, which have no norm.
_NOT_LAYERS = {'data_preprocessor', 'train_cfg', 'test_cfg', 'num_classes', 'align_corners'}


def survey(toolbox: str, paths: list[str] | None = None) -> Iterator[Record]:
    """Yield what became of each config of a zoo, or of those in `paths`.

    A record has the ``config`` and one of

    - ``no_model``: it is no config of a model, or cannot be read: why;
    - ``fails``: its model does not build here as it is: why;
    - ``norms``: the number of its BN, SyncBN and GN layers by kind. If it has some, ``sn`` is the
      number of layers that are SN with the norms replaced, ``left`` says how many others are left
      and why, and ``sn_fails`` why the model does not build then.

    Models that differ only in what has no norm layers, as in losses, are built once.
    """
    known: dict[str, Record] = {}
    for path in find_configs(toolbox) if paths is None else paths:
        try:
            config = read_zoo_config(toolbox, path)
        except Exception as error:
            yield {'config': path, 'no_model': reason_of(error)}
            continue
        if 'model' not in config:
            yield {'config': path, 'no_model': 'has no model'}
            continue
        key = _key(config)
        if key not in known:
            known[key] = _compare(config)
            # Free the models, and have the next time look at what is new.
            gc.collect()
            gc.freeze()
        yield {'config': path, **known[key]}


def _key(config: Config) -> str:
    """Return a text that is the same for models with the same layers but the last ones."""
    model = [config.default_scope, _without(config.model)]
    return json.dumps(model, default=str, sort_keys=True)


def _without(part: Any) -> Any:
    if isinstance(part, list | tuple):
        return [_without(value) for value in part]
    if not isinstance(part, dict):
        return part
    kept = part.keys() - _NOT_LAYERS
    return {key: _without(part[key]) for key in kept if not str(key).startswith('loss')}


def _compare(config: Config) -> Record:
    before = _try(lambda: _layers(build(config)))
    if isinstance(before, str):
        return {'fails': before}
    record: Record = {'norms': dict(Counter(before.values()))}
    if before:
        after = _try(lambda: _replaced(config))
        record |= {'sn_fails': after} if isinstance(after, str) else _difference(before, after)
    return record


def _replaced(config: Config) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return names of the SN layers, the kinds of the norms that are left, and why they are."""
    replace_norms(config, 'SN')
    model = build(config)
    reasons = {change.name: change.reason for change in norm_changes(model)}
    return list(switchable(model)), _layers(model), reasons


def _difference(
    before: dict[str, str], after: tuple[list[str], dict[str, str], dict[str, str]]
) -> Record:
    names, left, reasons = after
    lost = before.keys() - left.keys() - set(names)
    found = Counter(f'{left[name]}: {reasons.get(name) or "no reason given"}' for name in left)
    found.update(f'{before[name]}: gone' for name in lost)
    return {'sn': len(names)} | ({'left': dict(found)} if found else {})


def _layers(model: nn.Module) -> dict[str, str]:
    return {name: kind(layer) for name, layer in replaceable(model).items()}


def _try(compute: Callable[[], Any]) -> Any:
    """Return what a function returns, or in a sentence why it raised an error."""
    try:
        return compute()
    except Exception as error:
        return reason_of(error)
