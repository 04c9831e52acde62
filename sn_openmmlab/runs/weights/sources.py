"""The files from which the weights of a model start."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from mmengine.config import Config
from mmengine.model import BaseModule, PretrainedInit
from mmengine.registry import WEIGHT_INITIALIZERS
from torch import nn

from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.batch_norm_weights_hook import is_weights_hook
from sn_openmmlab.runs.errors.sentences import building


@dataclass(frozen=True)
class WeightSource:
    """A file, and the part of a model that it fills.

    Attributes:
        place: the key of the config that names the file.
        file: its path or address.
        module: the part that it fills.
        cfg: the ``init_cfg`` that names it, if one does.
        own_code: whether the class of the module overrides ``init_weights``.
        loader: what loads the file: mmengine, the ``init_weights`` of the module's class, which
            converts nothing, or the constructor of the model.
    """

    place: str
    file: Any
    module: nn.Module
    cfg: Mapping[str, Any] | None = None
    own_code: bool = False
    loader: Literal['mmengine', 'class', 'constructor'] = 'mmengine'

    @property
    def target(self) -> str:
        """Return the name of the filled part for messages."""
        return 'the model' if self.place in ('load_from', 'model') else self.place

    @cached_property
    def initializer(self) -> PretrainedInit | None:
        """Return the initializer of the ``init_cfg``.

        Raises:
            UsageError: it has no checkpoint or an unknown option.
        """
        if self.cfg is None:
            return None
        if not self.cfg.get('checkpoint'):
            raise UsageError(no_checkpoint(f'{self.place}.init_cfg'))
        cfg = {key: value for key, value in self.cfg.items() if key != 'override'}
        with building(f'{self.place}.init_cfg'):
            return WEIGHT_INITIALIZERS.build(cfg)


def no_checkpoint(place: str) -> str:
    """Return the message for an ``init_cfg`` that names no file."""
    return f'{place} has no checkpoint: name the file to start from, as {place}.checkpoint=FILE.'


def start_sources(network: nn.Module, config: Config) -> Iterator[WeightSource]:
    """Yield all sources of a training; of two that fill the same layer, the first one wins.

    Args:
        network: the model of the config, without a wrapper.
        config: of the training.
    """
    if config.get('load_from'):
        yield WeightSource('load_from', config.load_from, network, _conversion(config))
    yield from teacher_sources(network, config)
    # The outermost part first: mmengine loads it last.
    for name, part in network.named_modules():
        yield from _sources_of_part(part, f'model.{name}' if name else 'model')


def _conversion(config: Config) -> Mapping[str, Any] | None:
    """Return the ``init_cfg`` that does what a hook of the config does to ``load_from``."""
    if not any(is_weights_hook(hook) for hook in config.get('custom_hooks') or []):
        return None
    return dict(type='SNPretrained', checkpoint=config.load_from, prefix='', strict=False)


def teacher_sources(network: nn.Module, config: Config) -> Iterator[WeightSource]:
    """Yield the source of a distillation's teacher in MMDetection, which is no submodule."""
    teacher, source = getattr(network, 'teacher_model', None), config.model.get('teacher_ckpt')
    if isinstance(teacher, nn.Module) and source:
        yield WeightSource('model.teacher_ckpt', source, teacher, None, True, 'constructor')


def loads_by_itself(part: nn.Module) -> bool:
    """Return whether the ``init_weights`` of a module loads a file without mmengine."""
    init = _init_weights(part)
    return init not in (None, BaseModule.init_weights) and not _calls_super(init)


def _init_weights(part: nn.Module) -> Callable | None:
    method = getattr(part, 'init_weights', None)
    return getattr(method, '__func__', method)


def _sources_of_part(part: nn.Module, place: str) -> Iterator[WeightSource]:
    own_code = _init_weights(part) not in (None, BaseModule.init_weights)
    loader = 'class' if loads_by_itself(part) else 'mmengine'
    cfgs = getattr(part, 'init_cfg', None)
    cfgs = cfgs if isinstance(cfgs, list | tuple) else [cfgs]
    # The last of them is loaded last.
    starts = [cfg for cfg in reversed(cfgs) if _is_pretrained(cfg)]
    for cfg in starts:
        yield WeightSource(place, cfg.get('checkpoint'), part, cfg, own_code, loader)
    pretrained = getattr(part, 'pretrained', None)
    # MMDetection's DetectoRS_ResNet does so.
    if loader == 'class' and not starts and isinstance(pretrained, str):
        yield WeightSource(place, pretrained, part, None, own_code, loader)


def _calls_super(method: Callable) -> bool:
    """Return whether a method calls that of its base class, and so mmengine's in the end."""
    code = getattr(method, '__code__', None)
    return code is None or 'super' in code.co_names


def _is_pretrained(cfg: Any) -> bool:
    kind = cfg.get('type') if isinstance(cfg, Mapping) else None
    found = WEIGHT_INITIALIZERS.get(kind) if isinstance(kind, str) else kind
    return isinstance(found, type) and issubclass(found, PretrainedInit)
