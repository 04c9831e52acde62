"""The hook that lets a training be killed at any moment without losing its checkpoints."""

from typing import Any

from mmengine.dist import all_gather_object, is_main_process
from mmengine.fileio import LocalBackend, get_file_backend, register_backend
from mmengine.hooks import CheckpointHook, Hook
from mmengine.logging import print_log
from mmengine.runner import Runner

from sn_openmmlab.checkpoints.files.writing import remove_unfinished
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.interruption.whole_files import LateRemoval, WholeFiles


class AtomicCheckpointHook(Hook):
    """Keep the checkpoints of a training whole, whenever it is killed and however full the disk is.

    mmengine writes a checkpoint in place, and with ``max_keep_ckpts`` or ``save_best`` it removes
    the one before it first. Who is killed in between, or has a full disk, can lose both. With this
    hook each file is written under another name, and then takes its place at once. What it replaces
    is removed after that. So there must be room for one checkpoint more than is kept.

    Our tools add it to every training. For the toolbox's own tools, write in the config:

        custom_hooks = [dict(type='AtomicCheckpointHook')]

    It acts on local files. What a killed training left unfinished is removed by the next one. A
    training of several processes is refused if they do not all go on from the same checkpoint.

    Raises:
        UsageError: in a run, if the processes begin at different iterations.
    """

    # After CheckpointHook.
    priority = 'LOWEST'

    def __init__(self) -> None:
        self._late: list[tuple[CheckpointHook, LateRemoval]] = []

    def before_train(self, runner: Runner) -> None:
        """Write all local files of mmengine whole from now on, and let `CheckpointHook` wait."""
        _check_same_iteration(runner)
        if type(get_file_backend(runner.work_dir)) is LocalBackend:
            register_backend('local', WholeFiles, force=True, prefixes='')
        for hook in runner.hooks:
            if isinstance(hook, CheckpointHook):
                late = hook.file_backend = LateRemoval(hook.file_backend)
                self._late.append((hook, late))
                _clean(hook.out_dir)

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        """Remove what a checkpoint saved by iterations replaces."""
        self._remove()

    def after_train_epoch(self, runner: Runner) -> None:
        """Remove what a checkpoint saved by epochs replaces."""
        self._remove()

    def after_val_epoch(self, runner: Runner, metrics: Any = None) -> None:
        """Remove what a new best checkpoint replaces."""
        self._remove()

    def _remove(self) -> None:
        for hook, late in self._late:
            best = getattr(hook, 'best_ckpt_path_dict', {}).values()
            late.remove_now(keep={hook.last_ckpt, getattr(hook, 'best_ckpt_path', None), *best})


def _clean(folder: str) -> None:
    if is_main_process() and (names := remove_unfinished(folder)):
        print_log(
            f'Removed what a killed training left unfinished in {folder}: {", ".join(names)}.',
            logger='current',
        )


def _check_same_iteration(runner: Runner) -> None:
    begins = sorted(set(all_gather_object(runner.iter)))
    if len(begins) > 1:
        raise UsageError(
            f'the processes would go on from different iterations, {begins[0]} and {begins[-1]}: '
            'all machines need the checkpoints, so share the work folder, or copy it to each.'
        )
