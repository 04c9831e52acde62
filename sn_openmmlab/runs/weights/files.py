"""Checking that the checkpoint files that a run starts from are there."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import Config

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.weights.sources import no_checkpoint


def check_checkpoint(path: str | Path) -> None:
    """Raise UsageError where a local checkpoint that is asked for is not there."""
    if _is_missing(path):
        hint = ': that is a folder, name a file in it' if Path(path).expanduser().is_dir() else ''
        raise UsageError(f'there is no checkpoint file {path}{hint}.')


def check_load_from(config: Config) -> None:
    """Raise UsageError where the checkpoint file that a run starts or resumes from is not there."""
    start = config.get('load_from')
    if start and not config.get('resume') and _is_missing(start):
        raise UsageError(
            f'the config starts from {start}, which {_lacks(start)}: train what leaves it there, '
            'or name another with --cfg-options load_from=FILE.'
        )
    if start:
        check_checkpoint(start)


def check_pretrained(config: Config) -> None:
    """Raise UsageError where the model starts from checkpoints that cannot be read.

    That is where their files are not there, or torchvision, which has to fetch them, is not.
    """
    starts = _pretrained(config.model, 'model')
    missing = [start for start in starts if _is_missing(start.checkpoint)]
    if missing:
        places = ' and '.join(f'{start.part} from {start.checkpoint}' for start in missing)
        others = ' '.join(f'{start.key}=FILE' for start in missing)
        lacks = _lacks(missing[0].checkpoint)
        raise UsageError(
            f'the config starts {places}, which {lacks}: put the checkpoint there, name '
            f'another with --cfg-options {others}, or start from random weights with '
            f'{" ".join(start.from_scratch for start in missing)}.'
        )
    for start in starts:
        if start.checkpoint.startswith('torchvision://') and find_spec('torchvision') is None:
            raise UsageError(
                f'the config starts {start.part} from {start.checkpoint}, which needs torchvision: '
                f'install the one that fits your torch, or name a file with --cfg-options '
                f'{start.key}=FILE.'
            )


def _is_missing(path: str | Path) -> bool:
    return '://' not in str(path) and not Path(path).expanduser().is_file()


def _lacks(path: str | Path) -> str:
    return 'is a folder' if Path(path).expanduser().is_dir() else 'does not exist'


class _Start(NamedTuple):
    """A part that starts from a checkpoint: the keys of both, and how to do without."""

    part: str
    key: str
    checkpoint: str
    from_scratch: str


def _pretrained(part: Any, key: str) -> list[_Start]:
    if isinstance(part, list | tuple):
        return [hit for i, item in enumerate(part) for hit in _pretrained(item, f'{key}.{i}')]
    if not isinstance(part, dict):
        return []
    hits = [hit for name, item in part.items() for hit in _pretrained(item, f'{key}.{name}')]
    inits = part.get('init_cfg')
    if isinstance(inits, dict):
        return hits + _start(part, inits, key, f'{key}.init_cfg')
    for i, init in enumerate(inits or []):
        hits += _start(part, init, key, f'{key}.init_cfg.{i}')
    return hits


def _start(part: dict, init: Any, key: str, place: str) -> list[_Start]:
    if not isinstance(init, dict) or init.get('type') not in ('Pretrained', 'SNPretrained'):
        return []
    if not init.get('checkpoint'):
        raise UsageError(no_checkpoint(place))
    frozen = f' {key}.frozen_stages=-1' if part.get('frozen_stages', -1) >= 0 else ''
    start = _Start(key, f'{place}.checkpoint', str(init['checkpoint']), f'{key}.init_cfg=None')
    return [start._replace(from_scratch=start.from_scratch + frozen)]
