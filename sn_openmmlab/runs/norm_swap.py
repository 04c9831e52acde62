"""Replacing the norms of a config's model by SN."""

from mmengine.config import Config, ConfigDict

from sn_openmmlab.config_tree import imported_modules
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.names import LAYERS


def convert_norms(config: Config) -> None:
    """Change the model of a config to one that `WithSN` builds, with SN instead of BatchNorm.

    The ``norm_cfg`` at the top of the config gives the options if it names SN. A model that has
    the type ``WithSN`` stays unchanged.

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
        # Only a name can be dumped.
        of = f'{of.__module__}.{of.__qualname__}'
    rest = {key: value for key, value in model.items() if key != 'type'}
    config.model = ConfigDict(
        type='WithSN', of=of, norm_cfg=norm_cfg if named else dict(type='SN'), **rest
    )
    _import_package(config)


def _import_package(config: Config) -> None:
    """Add the package to ``custom_imports``, so that a dump of the config can be built."""
    names = imported_modules(config)
    if 'sn_openmmlab' not in names:
        others = config.get('custom_imports') or {}
        config.custom_imports = {
            'allow_failed_imports': False,
            **others,
            'imports': [*names, 'sn_openmmlab'],
        }
