"""The ways in which weights enter the model of a training."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from mmengine.config import Config
from mmengine.model import BaseModule, PretrainedInit
from mmengine.registry import WEIGHT_INITIALIZERS
from torch import nn

from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.build_errors import building


@dataclass(frozen=True)
class Way:
    """One way in which weights enter a model.

    Attributes:
        place: where the config names the file.
        source: the file.
        module: what it fills.
        cfg: the ``init_cfg`` that does it, if one does.
        own_code: whether the module's class has more to its initialization than mmengine.
        loader: what loads the file: mmengine, the ``init_weights`` of the module's class, which
            converts nothing, or the constructor of the model.
    """

    place: str
    source: Any
    module: nn.Module
    cfg: Mapping[str, Any] | None = None
    own_code: bool = False
    loader: Literal['mmengine', 'class', 'constructor'] = 'mmengine'

    @property
    def target(self) -> str:
        """What it fills, for people."""
        return 'the model' if self.place in ('load_from', 'model') else self.place

    @cached_property
    def initializer(self) -> PretrainedInit | None:
        """What the ``init_cfg`` names.

        Raises:
            UsageError: it has no checkpoint, or an option that nothing takes.
        """
        if self.cfg is None:
            return None
        if not self.cfg.get('checkpoint'):
            raise UsageError(no_checkpoint(f'{self.place}.init_cfg'))
        cfg = {key: value for key, value in self.cfg.items() if key != 'override'}
        with building(f'{self.place}.init_cfg'):
            return WEIGHT_INITIALIZERS.build(cfg)


def no_checkpoint(place: str) -> str:
    """Return what to say where an ``init_cfg`` in that place names no file."""
    return f'{place} has no checkpoint: name the file to start from, as {place}.checkpoint=FILE.'


def ways_of_start(network: nn.Module, config: Config) -> Iterator[Way]:
    """Yield all ways; where two fill the same layer, the one that comes first here wins.

    Args:
        network: built from the config's model, and bare.
        config: of the training.
    """
    if config.get('load_from'):
        yield Way('load_from', config.load_from, network)
    yield from ways_of_teachers(network, config)
    # The outermost part first: mmengine loads it last.
    for name, part in network.named_modules():
        yield from _ways_of_part(part, f'model.{name}' if name else 'model')


def ways_of_teachers(network: nn.Module, config: Config) -> Iterator[Way]:
    """Yield that of a teacher of MMDetection's distillations, which is no part of its model."""
    teacher, source = getattr(network, 'teacher_model', None), config.model.get('teacher_ckpt')
    if isinstance(teacher, nn.Module) and source:
        yield Way('model.teacher_ckpt', source, teacher, None, True, 'constructor')


def _ways_of_part(part: nn.Module, place: str) -> Iterator[Way]:
    init = getattr(type(part), 'init_weights', None)
    own_code = init is not None and init is not BaseModule.init_weights
    loader = 'class' if own_code and not _calls_super(init) else 'mmengine'
    cfgs = getattr(part, 'init_cfg', None)
    cfgs = cfgs if isinstance(cfgs, list | tuple) else [cfgs]
    # The last of them is loaded last.
    starts = [cfg for cfg in reversed(cfgs) if _is_pretrained(cfg)]
    for cfg in starts:
        yield Way(place, cfg.get('checkpoint'), part, cfg, own_code, loader)
    pretrained = getattr(part, 'pretrained', None)
    # As MMDetection's DetectoRS_ResNet.
    if loader == 'class' and not starts and isinstance(pretrained, str):
        yield Way(place, pretrained, part, None, own_code, loader)


def _calls_super(method: Callable) -> bool:
    """Whether a method calls that of its base class, which mmengine's come to in the end."""
    code = getattr(method, '__code__', None)
    return code is None or 'super' in code.co_names


def _is_pretrained(cfg: Any) -> bool:
    kind = cfg.get('type') if isinstance(cfg, Mapping) else None
    found = WEIGHT_INITIALIZERS.get(kind) if isinstance(kind, str) else kind
    return isinstance(found, type) and issubclass(found, PretrainedInit)
