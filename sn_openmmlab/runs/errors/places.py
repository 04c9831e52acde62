"""Which part of a config or of a run an error comes from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from mmengine.hooks import Hook
from torch import nn

from sn_openmmlab.config_tree import walk
from sn_openmmlab.hooks.non_finite.images import image_paths
from sn_openmmlab.runs.errors.traces import frames_of, module_of


@dataclass(frozen=True)
class Place:
    """A part of a config or of a run.

    Attributes:
        name: in words.
        is_built: whether it is just built from the config, not yet used.
    """

    name: str
    is_built: bool

    def __str__(self) -> str:
        return self.name


def find_place(error: BaseException, config: Mapping[str, Any]) -> Place | None:
    """Return the innermost part that an error went through, None if no part is known.

    Args:
        error: that was raised.
        config: where to look up the key of a part.
    """
    frames = frames_of(error)
    for depth in range(len(frames) - 1, -1, -1):
        frame = frames[depth]
        find = _FINDERS.get(frame.f_code.co_name)
        is_known = module_of(frame).startswith(('mmengine.', 'torch.nn.modules.module'))
        if find and is_known and (place := find(frame, frames[:depth], config)):
            return place
    return None


def images_of(error: BaseException) -> list[str]:
    """Return the paths of the images of the batch on which a loop failed, none if unknown."""
    for frame in reversed(frames_of(error)):
        if frame.f_code.co_name == 'run_iter' and 'data_batch' in frame.f_locals:
            return [path for path in image_paths(frame.f_locals['data_batch']) if path]
    return []


def _part_of_config(
    frame: FrameType, outer: list[FrameType], config: Mapping[str, Any]
) -> Place | None:
    """Return the key of a part that a registry builds, and its type."""
    settings = frame.f_locals.get('cfg')
    kind = settings.get('type') if isinstance(settings, Mapping) else None
    if kind is None:
        return None
    name = kind if isinstance(kind, str) else getattr(kind, '__name__', str(kind))
    key = _key_of(dict(settings), config)
    # mmengine builds a collate_fn and the like in the frame of their loader.
    return Place(f'{key} ({name})' if key else name, True)


def _key_of(settings: dict[str, Any], config: Mapping[str, Any]) -> str:
    """Return the key of a part of the config, if there is only one that it can be."""
    found = [
        (key, part)
        for key, part in walk(dict(config.items()))
        if key and part.get('type') == settings['type']
    ]
    same = [key for key, part in found if dict(part) == settings]
    return same[0] if same else found[0][0] if len(found) == 1 else ''


def _loader(frame: FrameType, outer: list[FrameType], config: Mapping[str, Any]) -> Place | None:
    for name in ('train', 'val', 'test'):
        if any(frame.f_code.co_name == f'build_{name}_loop' for frame in outer):
            return Place(f'{name}_dataloader', True)
    return None


def _layer(frame: FrameType, outer: list[FrameType], config: Mapping[str, Any]) -> Place | None:
    """Return the name of a layer in its model, which is the outermost module."""
    layer = frame.f_locals.get('self')
    if not isinstance(layer, nn.Module):
        return None
    modules = [frame.f_locals.get('self') for frame in outer if frame.f_code.co_name in _CALLS]
    model = next((module for module in modules if isinstance(module, nn.Module)), layer)
    names = {id(module): name for name, module in model.named_modules()}
    name = names.get(id(layer), '')
    kind = type(layer).__name__
    return Place(f'{name} ({kind})' if name else f'the model ({kind})', False)


def _hook(frame: FrameType, outer: list[FrameType], config: Mapping[str, Any]) -> Place | None:
    hook = frame.f_locals.get('hook')
    return Place(f'the hook {type(hook).__name__}', False) if isinstance(hook, Hook) else None


def _metric(frame: FrameType, outer: list[FrameType], config: Mapping[str, Any]) -> Place | None:
    metric = frame.f_locals.get('metric')
    return None if metric is None else Place(f'the metric {type(metric).__name__}', False)


def _setting(key: str) -> Callable[..., Place]:
    return lambda *found: Place(key, True)


_CALLS = ('_call_impl', 'train_step', 'val_step', 'test_step')
_FINDERS: dict[str, Callable[..., Place | None]] = {
    'build_from_cfg': _part_of_config,
    'build_model_from_cfg': _part_of_config,
    'build_dataloader': _loader,
    '_call_impl': _layer,
    'call_hook': _hook,
    'evaluate': _metric,
    'process': _metric,
    'update_params': lambda *found: Place('optim_wrapper', False),
    'setup_env': _setting('env_cfg'),
    'set_randomness': _setting('randomness'),
    'build_logger': _setting('log_level'),
    'build_visualizer': _setting('visualizer'),
    'build_model': _setting('model'),
    'scale_lr': _setting('auto_scale_lr'),
    'build_optim_wrapper': _setting('optim_wrapper'),
    'build_param_scheduler': _setting('param_scheduler'),
    'build_train_loop': _setting('train_cfg'),
    'build_val_loop': _setting('val_cfg'),
    'build_test_loop': _setting('test_cfg'),
    'build_log_processor': _setting('log_processor'),
    'register_default_hooks': _setting('default_hooks'),
    'register_custom_hooks': _setting('custom_hooks'),
}
