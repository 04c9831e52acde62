"""The check that the checkpoint files of a run exist."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import Config

from sn_openmmlab.config_tree import walk
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.weights.sources import no_checkpoint


def check_checkpoint(path: str | Path) -> None:
    """Raise UsageError if a local checkpoint does not exist."""
    if _is_missing(path):
        hint = ': that is a folder, name a file in it' if Path(path).expanduser().is_dir() else ''
        raise UsageError(f'there is no checkpoint file {path}{hint}.')


def check_load_from(config: Config) -> None:
    """Raise UsageError if the checkpoint that a run starts or resumes from does not exist."""
    start = config.get('load_from')
    if start is not None and not isinstance(start, str | Path):
        raise UsageError(f'load_from of the config must be a path, not {start!r}.')
    if start and not config.get('resume') and _is_missing(start):
        raise UsageError(
            f'the config starts from {start}, which {_fault(start)}: run the training that '
            'writes it, or name another file with --cfg-options load_from=FILE.'
        )
    if start:
        check_checkpoint(start)


def check_pretrained(config: Config) -> None:
    """Raise UsageError if checkpoints that the model starts from do not exist.

    Those of torchvision also need that package, which downloads them.
    """
    starts = list(_starts(config.model))
    missing = [start for start in starts if _is_missing(start.checkpoint)]
    if missing:
        places = ' and '.join(f'{start.part} from {start.checkpoint}' for start in missing)
        others = ' '.join(f'{start.key}=FILE' for start in missing)
        fault = _fault(missing[0].checkpoint)
        raise UsageError(
            f'the config starts {places}, which {fault}: put the checkpoint there, name '
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


def _fault(path: str | Path) -> str:
    return 'is a folder' if Path(path).expanduser().is_dir() else 'does not exist'


class _Start(NamedTuple):
    """A part that starts from a checkpoint: the keys of both, and how to start without it."""

    part: str
    key: str
    checkpoint: str
    from_scratch: str


def _starts(model: Any) -> Iterator[_Start]:
    """Yield each part of a model that starts from a checkpoint.

    Raises:
        UsageError: its ``init_cfg`` names none.
    """
    for key, part in walk(model, 'model'):
        inits = part.get('init_cfg')
        places = {f'{key}.init_cfg': inits}
        if isinstance(inits, list | tuple):
            places = {f'{key}.init_cfg.{i}': init for i, init in enumerate(inits)}
        for place, init in places.items():
            if not isinstance(init, dict) or init.get('type') not in ('Pretrained', 'SNPretrained'):
                continue
            if not init.get('checkpoint'):
                raise UsageError(no_checkpoint(place))
            frozen = f' {key}.frozen_stages=-1' if part.get('frozen_stages', -1) >= 0 else ''
            scratch = f'{key}.init_cfg=None{frozen}'
            yield _Start(key, f'{place}.checkpoint', str(init['checkpoint']), scratch)
