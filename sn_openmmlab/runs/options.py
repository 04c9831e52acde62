"""What the options of the command lines change in a config."""

import atexit
import os
from datetime import timedelta
from pathlib import Path

import torch
from mmengine.config import Config, ConfigDict
from mmengine.device import get_device

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.newest_checkpoint import newest_checkpoint


def set_work_dir(config: Config, work_dir: str | Path | None) -> None:
    """Set the folder of the results: ``work_dir``, else the config's own, else by its file name.

    Raises:
        UsageError: the folder is a file, or cannot be written to.
    """
    if work_dir is not None:
        config.work_dir = str(work_dir)
    elif config.get('work_dir') is None:
        config.work_dir = str(Path('work_dirs') / Path(config.filename).stem)
    _check_writable(config.work_dir)


def _check_writable(folder: str) -> None:
    """Raise UsageError unless a folder can be written to, or made."""
    if not isinstance(folder, str):
        raise UsageError(f'work_dir of the config must be a path, not {folder!r}.')
    path = place = Path(folder).absolute()
    while not os.path.lexists(place):
        place = place.parent
    fault = ''
    if not place.is_dir():
        fault = 'is a file' if place == path else f'cannot be made, since {place} is a file'
    elif not os.access(place, os.W_OK | os.X_OK):
        fault = f'cannot be written to, since {place} may not be changed'
    if fault:
        raise UsageError(f'the work folder {folder} {fault}: name another --work-dir.')


def use_launcher(config: Config, launcher: str) -> None:
    """Set the launcher; without CUDA, start the process group on gloo.

    mmengine starts distributed runs only on CUDA devices. Without one, the process group is
    started here, from the launcher's environment, and the model's wrapper gets no device.

    Raises:
        UsageError: the processes were not started by the launcher, it needs CUDA, or the config
            asks for FSDP.
    """
    config.launcher = launcher
    if launcher == 'pytorch' and 'RANK' not in os.environ:
        raise UsageError(
            '--launcher pytorch is for processes that torchrun starts: put '
            'torchrun --nproc_per_node=N instead of python.'
        )
    if launcher != 'none':
        _refuse_sharding(config)
    if launcher == 'none' or torch.cuda.is_available():
        return
    if launcher != 'pytorch':
        raise UsageError(f'without CUDA only --launcher pytorch can be used, not {launcher}.')
    seconds = (config.get('env_cfg') or {}).get('dist_cfg', {}).get('timeout')
    timeout = None if seconds is None else timedelta(seconds=seconds)
    torch.distributed.init_process_group('gloo', timeout=timeout)
    atexit.register(_leave_group)
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=config.get('find_unused_parameters', False),
    )
    own = config.get('model_wrapper_cfg') or {}
    config.model_wrapper_cfg = ConfigDict({**wrapper, **own, 'device_ids': None})


def _refuse_sharding(config: Config) -> None:
    for name in ('model_wrapper_cfg', 'strategy'):
        kind = (config.get(name) or {}).get('type')
        if kind in ('MMFullyShardedDataParallel', 'FSDPStrategy'):
            raise UsageError(
                f'the config asks for {kind}, and these tools do not train with FSDP: remove '
                f'{name} to train with DistributedDataParallel, or write a training loop with '
                "torch's fully_shard, which SN works with."
            )


def _leave_group() -> None:
    # Threads of gloo that outlive the interpreter can abort the process at its end.
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def set_resume(config: Config, resume: str | None) -> None:
    """Resume from a file, or with ``'auto'`` from the newest whole checkpoint of the work folder.

    If there is none yet, print so and start as the config says.

    Args:
        config: of the training, with its work folder.
        resume: a file, ``'auto'``, or None to do what the config says.

    Raises:
        UsageError: the work folder had a checkpoint, but has no whole one; see `newest_checkpoint`.
    """
    if resume not in (None, 'auto'):
        config.resume, config.load_from = True, resume
    elif resume == 'auto' or (config.get('resume') and not config.get('load_from')):
        newest = newest_checkpoint(config.work_dir, _checkpoint_folders(config))
        config.resume = newest is not None
        if newest:
            config.load_from = newest
        else:
            start = f', from {config.load_from}' if config.get('load_from') else ''
            # There is no log yet.
            print(f'{config.work_dir} has no checkpoint: the training starts anew{start}.')


def _checkpoint_folders(config: Config) -> list[Path]:
    """Return where `CheckpointHook` writes, if that is not the work folder."""
    hook = (config.get('default_hooks') or {}).get('checkpoint') or {}
    return [Path(hook['out_dir']) / Path(config.work_dir).name] if hook.get('out_dir') else []


def use_amp(config: Config) -> None:
    """Train in automatic mixed precision with a dynamic loss scale.

    Raises:
        UsageError: there is no GPU, which mmengine's scaling needs.
    """
    if get_device() == 'cpu':
        raise UsageError('--amp needs a GPU, and there is none here.')
    config.optim_wrapper.type = 'AmpOptimWrapper'
    config.optim_wrapper.loss_scale = 'dynamic'


def use_scaled_lr(config: Config) -> None:
    """Scale the learning rate by the total batch size over the config's ``base_batch_size``.

    Raises:
        UsageError: the config has no ``base_batch_size``.
    """
    if 'base_batch_size' not in (config.get('auto_scale_lr') or {}):
        raise UsageError(
            '--auto-scale-lr needs auto_scale_lr = dict(base_batch_size=…) in the config: the '
            'total batch size that its learning rate is for.'
        )
    config.auto_scale_lr.enable = True


def use_test_time_augmentation(config: Config) -> None:
    """Test by the config's ``tta_model`` and ``tta_pipeline``.

    Raises:
        UsageError: the config lacks one of the two.
    """
    missing = [name for name in ('tta_model', 'tta_pipeline') if name not in config]
    if missing:
        raise UsageError(f'--tta needs {" and ".join(missing)} in the config.')
    config.model = ConfigDict(**config.tta_model, module=config.model)
    config.test_dataloader.dataset.pipeline = config.tta_pipeline


def draw_predictions(config: Config, folder: str | Path) -> None:
    """Draw every prediction of a test into ``folder``.

    Raises:
        UsageError: the config has no visualization hook.
    """
    hook = config.get('default_hooks', {}).get('visualization')
    if hook is None:
        raise UsageError("--show-dir needs a visualization hook in the config's default_hooks.")
    # MMDetection joins a relative folder to its own once per image.
    folder = Path(folder).absolute()
    hook.interval = 1
    if config.default_scope == 'mmpretrain':
        hook.update(enable=True, out_dir=str(folder))
        return
    hook.draw = True
    if config.default_scope == 'mmdet':
        hook.test_out_dir = str(folder)
    else:
        config.visualizer.save_dir = str(folder)


def check_dump(file: str | Path) -> None:
    """Raise UsageError unless the file's name ends in ``.pkl`` or ``.pickle``."""
    if Path(file).suffix not in ('.pkl', '.pickle'):
        raise UsageError(f'--out must name a .pkl or .pickle file, not {file}.')
