"""The hook that keeps a resumed training from removing files that are not its own."""

import os
from typing import Any

from mmengine.fileio import exists, join_path
from mmengine.hooks import CheckpointHook, Hook
from mmengine.logging import print_log
from mmengine.runner import Runner

_BEST, _LAST, _KEPT = 'best_ckpt', 'last_ckpt', 'keep_ckpt_ids'


class CheckpointPathsHook(Hook):
    """Let a training remove only checkpoints in its own folder, whatever it is resumed from.

    A checkpoint holds the path of the best one, and the numbers of those that are kept. After
    ``--resume``, mmengine's `CheckpointHook` removes the file or the whole folder at that path as
    soon as there is a better one. Here only the name counts: the file in the folder of this
    training is meant. If there is none, the path is forgotten.

    Our tools add it to every training. For the toolbox's own tools, write in the config:

        custom_hooks = [dict(type='CheckpointPathsHook')]
    """

    priority = 'VERY_HIGH'

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        """Change the paths in a checkpoint before mmengine takes over what it holds."""
        hub = checkpoint.get('message_hub')
        info = hub.get('runtime_info') if isinstance(hub, dict) else None
        if not isinstance(info, dict):
            return
        folder = checkpoint_folder(runner)
        for key in [key for key in info if str(key).startswith((_BEST, _LAST))]:
            path = info[key]
            info[key] = _own_path(path, folder, 'best_' if key.startswith(_BEST) else '')
            if info[key] is None:
                _forget(hub, key)
                # Who only loads the weights needs to know nothing of paths.
                if runner._resume:
                    print_log(f'{key}, {path!r:.200}, is not in {folder}.', logger='current')
        if _KEPT in info and not _are_numbers(info[_KEPT]):
            _forget(hub, _KEPT)


def checkpoint_folder(runner: Runner) -> str:
    """Return the folder to which `CheckpointHook` writes."""
    for hook in runner.hooks:
        if isinstance(hook, CheckpointHook) and hook.out_dir not in (None, runner.work_dir):
            return join_path(hook.out_dir, os.path.basename(runner.work_dir.rstrip(os.sep)))
    return runner.work_dir


def _own_path(path: Any, folder: str, start: str) -> str | None:
    """Return the path of a file of that name in the folder, or None if there is none."""
    name = os.path.basename(path) if isinstance(path, str) else ''
    if name in ('', '.', '..') or '\0' in name or not name.startswith(start):
        return None
    own = join_path(folder, name)
    return own if exists(own) else None


def _forget(hub: dict, key: str) -> None:
    del hub['runtime_info'][key]
    hub.get('resumed_keys', {}).pop(key, None)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int for value in values)
