"""The config of an exported model."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.config import Config, ConfigDict

from sn_openmmlab.config_tree import imported_modules
from sn_openmmlab.inference.export import exported_norms
from sn_openmmlab.inference.export.layers import ExportedLayer
from sn_openmmlab.inference.trained_model import model_config
from sn_openmmlab.layers.names import LAYERS

MODULE = 'exported_norms'
_OURS = ('NormCheckHook', 'BatchNormWeightsHook', 'SparsifyHook', 'BatchAverageHook')
_SN = (*LAYERS, *LAYERS.values())
# By which the tool knows its own files.
FIRST_LINE = '# Written by tools/sparsify.py --export.'
# In quotes that the name of a folder can hardly break. At the end of the path, where no file of the
# folder hides a package of the same name.
_HEAD = f'''\
{FIRST_LINE} exported_norms.py has to lie beside this file.
import sys

sys.path.append(r"""{{{{ fileDirname }}}}""")
'''


def module_text() -> str:
    """Return the source of the module that builds exported models."""
    return inspect.getsource(exported_norms)


def config_text(config: Config, layers: Sequence[ExportedLayer]) -> str:
    """Return the text of the config that builds a model with exported norms.

    It has neither hooks nor initializers of this package, and imports it only if a layer stays SN.
    """
    config = Config(config.to_dict())
    imports = [name for name in imported_modules(config) if name.split('.')[0] != 'sn_openmmlab']
    if any(layer.stays for layer in layers):
        imports.append('sn_openmmlab')
    config.custom_imports = dict(imports=[*imports, MODULE], allow_failed_imports=False)
    hooks = config.get('custom_hooks') or []
    config.custom_hooks = [hook for hook in hooks if _name(hook.get('type')) not in _OURS]
    config.load_from, config.resume = None, False
    config.model = _model(config, layers)
    config.pop('data_preprocessor', None)
    return _HEAD + config.pretty_text


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _model(config: Config, layers: Sequence[ExportedLayer]) -> ConfigDict:
    model = _without_switch_norm(ConfigDict(model_config(config)).to_dict())
    kind = model.pop('type')
    if kind == 'WithNorm':
        kind = model.pop('of')
        for key in ('norm_cfg', 'norm_parts'):
            model.pop(key, None)
    norms = {layer.name: layer.norm for layer in layers}
    return ConfigDict(type='WithExportedNorms', of=kind, norms=norms, **model)


def _without_switch_norm(part: Any) -> Any:
    """Return a copy with a placeholder for each SN, and without weights to start from."""
    if isinstance(part, list | tuple):
        return type(part)(_without_switch_norm(item) for item in part)
    if not isinstance(part, Mapping):
        return part
    if part.get('type') in _SN:
        return dict(type='ExportedNorm')
    rest = {key: value for key, value in part.items() if not _starts(key, value)}
    return {key: _without_switch_norm(value) for key, value in rest.items()}


def _starts(key: str, value: Any) -> bool:
    """Return whether it is an `init_cfg` that loads a file."""
    cfgs = value if isinstance(value, list | tuple) else [value]
    kinds = [cfg.get('type') for cfg in cfgs if isinstance(cfg, Mapping)]
    return key == 'init_cfg' and bool({'Pretrained', 'SNPretrained'}.intersection(map(str, kinds)))
