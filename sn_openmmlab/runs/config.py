"""Reading the config of a run and finding its toolbox."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mmengine.config import Config
from mmengine.config.utils import MODULE2PACKAGE

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.errors.traces import is_of_users_module
from sn_openmmlab.runs.norm_cfgs import check_norm_cfgs
from sn_openmmlab.runs.norm_swap import replace_norms
from sn_openmmlab.runs.zoo import TOOLBOXES, find_config


def read_config(
    path: str | Path,
    options: Mapping[str, Any] | None = None,
    norm: str | Mapping[str, Any] | None = None,
    norm_parts: Sequence[str] | None = None,
) -> Config:
    """Read a config of MMDetection, MMSegmentation or MMPretrain.

    Args:
        path: the config file, or the name of a config in a zoo, as ``mmdet::retinanet/….py``.
        options: changes by dotted key, as ``--cfg-options`` gives them.
        norm: replace the norms of the model by this one; see
            `sn_openmmlab.runs.norm_swap.replace_norms`. None leaves them.
        norm_parts: the parts of the model in which to do so; None for all.

    Raises:
        Exception: of a module that the config imports, with its traceback.
        UsageError: the file does not exist or is no config, its ``default_scope`` is none of
            `TOOLBOXES` or not installed, it has no model, a ``norm_cfg`` of the model is wrong, or
            the norms of the model cannot be replaced.
    """
    path = find_config(str(path)) if '::' in str(path) else Path(path)
    if not path.is_file():
        raise UsageError(f'there is no config file {path}.')
    try:
        config = Config.fromfile(path)
        config.merge_from_dict(dict(options or {}))
    except (Exception, SystemExit) as error:
        if is_of_users_module(error):
            raise
        raise UsageError(f'{path} cannot be read as a config: {_reason(error)}') from error
    _check_toolbox(config, path)
    check_norm_cfgs(config)
    if norm is not None:
        replace_norms(config, norm, norm_parts)
    return config


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


def _reason(error: BaseException) -> str:
    """Return in one sentence why a config cannot be read."""
    for toolbox in TOOLBOXES:
        package, spec = MODULE2PACKAGE[toolbox], find_spec(toolbox)
        # mmengine's advice to install it would overwrite the distribution of the other name.
        if spec and str(error).startswith(f'{package} is not installed'):
            return (
                f'mmengine looks for the base {toolbox}::… in a distribution named {package}, but '
                f'the {toolbox} here has another name: instead of {toolbox}:: write the path of '
                f'its configs, {Path(spec.origin).parent / ".mim" / "configs"}/…'
            )
    # After this mmengine lists folders, one a line.
    said = _first_line(error).removesuffix(', the current sys.path is:')
    cause = error
    while isinstance(cause.__context__, ImportError):
        cause = cause.__context__
    return said if cause is error else f'{said} ({_first_line(cause)})'


def _first_line(error: BaseException) -> str:
    return str(error).strip().split('\n')[0].rstrip() or type(error).__name__
