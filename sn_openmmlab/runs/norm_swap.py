"""Replacing the norms of a config's model: what ``--norm`` does."""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from mmengine.config import Config, ConfigDict

from sn_openmmlab.config_tree import imported_modules
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.names import LAYERS

# The first one logs what was replaced, the second one converts the weights in load_from.
_HOOKS = ('NormCheckHook', 'BatchNormWeightsHook')


def replace_norms(
    config: Config, norm: str | Mapping[str, Any] = 'SN', parts: Sequence[str] | None = None
) -> None:
    """Change a config so that its model has one norm in place of BN, SyncBN, GN and SN.

    The model gets the type ``WithNorm``, which says what is replaced and what stays; see
    `sn_openmmlab.with_norm.build_with_norm`. The config also gets ``custom_imports``,
    `NormCheckHook` and, for SN, `BatchNormWeightsHook`, so that the toolboxes' own tools run it.

    Args:
        config: of MMDetection, MMSegmentation or MMPretrain; it is changed in place.
        norm: the norm, as ``'SN'``, ``'SyncSN'``, ``'BN'``, ``'GN'``, ``'BRN'``, or a ``norm_cfg``
            such as ``dict(type='SN', scopes=('in', 'ln'))``.
        parts: the parts of the model in which to replace norms, such as ``['backbone', 'neck']``;
            None for all.

    Raises:
        UsageError: the model has a key that ``WithNorm`` needs, or ``custom_hooks`` is no list.

    Example:
        ```python
        config = Config.fromfile('retinanet_r50_fpn_1x_coco.py')
        replace_norms(config, 'SN')
        Runner.from_cfg(config).train()
        ```
    """
    norm_cfg = dict(type=norm) if isinstance(norm, str) else dict(norm)
    model = config.model
    if model.get('type') == 'WithNorm':
        # An update would keep the options that the new norm does not have.
        model.norm_cfg = ConfigDict(norm_cfg)
        _set_parts(model, parts)
    else:
        config.model = _wrapped(model, norm_cfg, parts)
    _import_package(config)
    _add_hooks(config, _HOOKS if norm_cfg.get('type', 'SN') in LAYERS else _HOOKS[:1])


def read_norm(text: str) -> str | dict[str, Any]:
    """Return the norm that an option of the command line gives.

    Args:
        text: a name such as ``SN``, or a dict such as ``dict(type='SN', scopes=('in', 'ln'))``.

    Raises:
        UsageError: it is neither.
    """
    text = text.strip()
    if text.isidentifier():
        return text
    try:
        tree = ast.parse(text, mode='eval').body
        if isinstance(tree, ast.Call) and ast.unparse(tree.func) == 'dict' and not tree.args:
            found = {str(key.arg): ast.literal_eval(key.value) for key in tree.keywords}
        else:
            found = ast.literal_eval(tree)
        if not isinstance(found, dict) or not isinstance(found.get('type'), str):
            raise ValueError
    except (SyntaxError, ValueError) as error:
        raise UsageError(
            f'--norm takes a name or a dict with a type, not {text}: write SN, or '
            "\"dict(type='SN', scopes=('in', 'ln'))\" in quotes."
        ) from error
    return found


def _wrapped(
    model: Mapping[str, Any], norm_cfg: dict[str, Any], parts: Sequence[str] | None
) -> ConfigDict:
    taken = [key for key in ('of', 'norm_cfg', 'norm_parts') if key in model]
    if taken:
        raise UsageError(
            f'--norm cannot wrap a model that has {" and ".join(taken)} of its own: set the norm '
            'there, or call sn_openmmlab.convert_batch_norm on the built model.'
        )
    of = model.get('type')
    if isinstance(of, type):
        # Only a name can be dumped.
        of = f'{of.__module__}.{of.__qualname__}'
    rest = {key: value for key, value in model.items() if key != 'type'}
    wrapped = ConfigDict(type='WithNorm', of=of, norm_cfg=norm_cfg)
    _set_parts(wrapped, parts)
    wrapped.update(rest)
    return wrapped


def _set_parts(model: ConfigDict, parts: Sequence[str] | None) -> None:
    model.pop('norm_parts', None)
    if parts:
        model.norm_parts = list(parts)


def _add_hooks(config: Config, hooks: Sequence[str]) -> None:
    present = config.get('custom_hooks') or []
    if not isinstance(present, list | tuple):
        raise UsageError('custom_hooks of the config must be a list of hooks.')
    types = [hook.get('type') for hook in present if isinstance(hook, Mapping)]
    config.custom_hooks = [*present, *(dict(type=hook) for hook in hooks if hook not in types)]


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
