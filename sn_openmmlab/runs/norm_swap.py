"""The swap of a config's BatchNorm for SN."""

from mmengine.config import Config, ConfigDict

from sn_openmmlab.config_tree import imported_modules
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.names import LAYERS


def convert_norms(config: Config) -> None:
    """Let the config's model be built by ``WithSN``, with the SN that its ``norm_cfg`` names.

    That is the ``norm_cfg`` at the top of the config, or plain SN where that names another norm. A
    model that is built so already stays as it is.

    Raises:
        UsageError: the model has a ``norm_cfg`` or ``of`` of its own.
    """
    model = config.model
    if model.get('type') == 'WithSN':
        return
    taken = [key for key in ('of', 'norm_cfg') if key in model]
    if taken:
        raise UsageError(
            f'--convert-norms cannot wrap a model that has {" and ".join(taken)} of its own: call '
            'sn_openmmlab.convert_batch_norm on the built model instead.'
        )
    norm_cfg = config.get('norm_cfg')
    named = isinstance(norm_cfg, dict) and norm_cfg.get('type') in LAYERS
    of = model.get('type')
    if isinstance(of, type):
        # By its name it can be dumped.
        of = f'{of.__module__}.{of.__qualname__}'
    rest = {key: value for key, value in model.items() if key != 'type'}
    config.model = ConfigDict(
        type='WithSN', of=of, norm_cfg=norm_cfg if named else dict(type='SN'), **rest
    )
    _import_package(config)


def _import_package(config: Config) -> None:
    """Let the config, when it is dumped, import what registers ``WithSN``."""
    names = imported_modules(config)
    if 'sn_openmmlab' not in names:
        others = config.get('custom_imports') or {}
        config.custom_imports = {
            'allow_failed_imports': False,
            **others,
            'imports': [*names, 'sn_openmmlab'],
        }
