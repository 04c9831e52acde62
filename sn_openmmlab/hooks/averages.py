"""The averages of a run's weights, which `EMAHook` keeps."""

from mmengine.hooks import EMAHook
from mmengine.runner import Runner

from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.layers.sparse import copy_choices


def share_choices(runner: Runner) -> None:
    """Give the averages of a run's weights the choices of its sparse SN layers.

    `EMAHook` copies the model before an ``init_cfg`` loads weights into it, and λ of an average may
    have another arg-max.
    """
    for hook in runner.hooks:
        if isinstance(hook, EMAHook):
            copy_choices(unwrapped(runner.model), hook.ema_model.module)
