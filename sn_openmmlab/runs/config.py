"""Reading a toolbox config, finding its toolbox, and fitting it to this machine."""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from mmengine.config import Config, ConfigDict
from mmengine.config.utils import MODULE2PACKAGE

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.norm_cfgs import check_norm_cfgs
from sn_openmmlab.runs.ways import no_checkpoint
from sn_openmmlab.runs.with_sn import convert_norms

TOOLBOXES = ('mmdet', 'mmseg', 'mmpretrain')


def read_config(
    path: str | Path, options: Mapping[str, Any] | None = None, convert: bool = False
) -> Config:
    """Read a config of MMDetection, MMSegmentation or MMPretrain.

    Args:
        path: the config file.
        options: changes by dotted key, as ``--cfg-options`` gives them.
        convert: whether the model is to have SN in place of BatchNorm; see
            :func:`~sn_openmmlab.runs.with_sn.convert_norms`.

    Raises:
        UsageError: there is no such file, it cannot be read as a config, it names no toolbox of
            ours in ``default_scope`` or has no model, that toolbox is not installed, a ``norm_cfg``
            of the model cannot be meant, or the model cannot be converted.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f'there is no config file {path}.')
    try:
        config = Config.fromfile(path)
        config.merge_from_dict(dict(options or {}))
    except Exception as error:
        raise UsageError(f'{path} cannot be read as a config: {_reason(error)}') from error
    _check_toolbox(config, path)
    check_norm_cfgs(config)
    if convert:
        convert_norms(config)
    return config


def set_work_dir(config: Config, work_dir: str | Path | None) -> None:
    """Let results go to ``work_dir``, else where the config says, else to a folder of its name.

    Raises:
        UsageError: there is a file in that place.
    """
    if work_dir is not None:
        config.work_dir = str(work_dir)
    elif config.get('work_dir') is None:
        config.work_dir = str(Path('work_dirs') / Path(config.filename).stem)
    if Path(config.work_dir).exists() and not Path(config.work_dir).is_dir():
        raise UsageError(f'the work folder {config.work_dir} is a file: name another --work-dir.')


def use_launcher(config: Config, launcher: str) -> None:
    """Set the launcher, and on a machine without CUDA let the processes talk over gloo.

    mmengine starts distributed runs on a CUDA device only, so there the process group is made
    here, from the launcher's environment, and the model's wrapper is told to name no device.
    """
    config.launcher = launcher
    if launcher == 'pytorch' and 'RANK' not in os.environ:
        raise UsageError(
            '--launcher pytorch is for processes that torchrun starts: put '
            'torchrun --nproc_per_node=N in place of python.'
        )
    if launcher == 'none' or torch.cuda.is_available():
        return
    if launcher != 'pytorch':
        raise UsageError(f'without CUDA only --launcher pytorch can be used, not {launcher}.')
    torch.distributed.init_process_group('gloo')
    config.model_wrapper_cfg = ConfigDict(
        type='MMDistributedDataParallel',
        device_ids=None,
        broadcast_buffers=False,
        find_unused_parameters=config.get('find_unused_parameters', False),
    )


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


def _check_toolbox(config: Config, path: Path) -> None:
    scope = config.get('default_scope')
    if scope not in TOOLBOXES:
        raise UsageError(
            f'{path} has default_scope = {scope!r}, but must name its toolbox there: '
            f'one of {", ".join(TOOLBOXES)}.'
        )
    if find_spec(scope) is None:
        raise UsageError(f'{path} is a config of {scope}, which is not installed here.')
    if 'model' not in config:
        raise UsageError(f'{path} has no model: it is not the config of a whole run.')


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


def _reason(error: Exception) -> str:
    """Why a config cannot be read, in one sentence."""
    for toolbox in TOOLBOXES:
        package, spec = MODULE2PACKAGE[toolbox], find_spec(toolbox)
        # mmengine advises to install it, which would overwrite the toolbox of the other name.
        if spec and str(error).startswith(f'{package} is not installed'):
            return (
                f'mmengine looks for the base {toolbox}::… in a distribution named {package}, but '
                f'the {toolbox} here has another name: in place of {toolbox}:: write the path of '
                f'its configs, {Path(spec.origin).parent / ".mim" / "configs"}/…'
            )
    # After this mmengine lists folders, one a line.
    return _first_line(error).removesuffix(', the current sys.path is:')


def _first_line(error: Exception) -> str:
    return str(error).strip().split('\n')[0].rstrip() or type(error).__name__
