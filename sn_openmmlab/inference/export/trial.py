"""Running a model on one random image, to see what its norm layers compute."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch
from mmengine.registry import DefaultScope
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from sn_openmmlab.layers.switch_norm import SwitchNorm

_SIDE = 224
_SAMPLES = {'mmdet': 'DetDataSample', 'mmseg': 'SegDataSample', 'mmpretrain': 'DataSample'}
_CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass
class Trial:
    """What a model did on an image.

    Attributes:
        inputs: the first input of each SN layer that ran.
        outputs: the output for it.
        conv_inputs: the first input of each convolution that ran.
        folds: SN layer → the one convolution whose outputs are its inputs, all of them, and are
            read by nothing else.
    """

    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    conv_inputs: dict[str, Tensor] = field(default_factory=dict)
    folds: dict[str, str] = field(default_factory=dict)


def random_image(scope: str) -> dict[str, list]:
    """Return a batch of one random image of 224 × 224 pixels, as the pipelines of a toolbox do."""
    generator = torch.Generator().manual_seed(0)
    image = torch.randint(0, 256, (3, _SIDE, _SIDE), generator=generator, dtype=torch.uint8)
    shape = (_SIDE, _SIDE)
    meta = dict(img_shape=shape, ori_shape=shape, pad_shape=shape, scale_factor=(1.0, 1.0))
    sample = getattr(import_module(f'{scope}.structures'), _SAMPLES[scope])(metainfo=meta)
    return {'inputs': [image], 'data_samples': [sample]}


@torch.no_grad()
def predict(model: nn.Module, scope: str) -> Any:
    """Return the predictions of a model of a toolbox on the random image."""
    with DefaultScope.overwrite_default_scope(scope):
        return model.test_step(random_image(scope))


@torch.no_grad()
def features(model: nn.Module, scope: str) -> list[Tensor]:
    """Return all tensors among the features of the random image, in their order."""
    with DefaultScope.overwrite_default_scope(scope):
        data = model.data_preprocessor(random_image(scope), False)
        return list(_tensors(model.extract_feat(data['inputs'])))


def try_model(model: nn.Module, scope: str) -> Trial:
    """Run a sparse model in evaluation mode on the random image, and note what its layers did."""
    trial, reads = Trial(), _Reads()
    with _watched(model, trial, reads), reads:
        predict(model, scope)
    trial.folds = reads.folds()
    return trial


class _Reads(TorchFunctionMode):
    """Notes who reads the outputs of convolutions."""

    def __init__(self) -> None:
        super().__init__()
        # By the id of a tensor, which is kept here so that no other gets its id.
        self.made: dict[int, tuple[str, Tensor]] = {}
        self.readers: dict[int, list[str]] = {}
        self.sources: dict[str, set[str | None]] = {}
        # The layers that are running, whose own operations do not count.
        self.inside = 0

    def __torch_function__(
        self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if not self.inside and any(True for _ in _tensors(result)):
            for tensor in _tensors((args, kwargs)):
                self.read(tensor, '')
        return result

    def read(self, tensor: Tensor, reader: str) -> None:
        if id(tensor) in self.made:
            self.readers.setdefault(id(tensor), []).append(reader)

    def folds(self) -> dict[str, str]:
        """Return SN layer → convolution, where each output of it goes there and nowhere else."""
        targets: dict[str, set[tuple[str, ...]]] = {}
        for key, (conv, _) in self.made.items():
            targets.setdefault(conv, set()).add(tuple(self.readers.get(key, ())))
        folds = {}
        for conv, readers in targets.items():
            (first, *others) = readers
            if not others and len(first) == 1 and self.sources.get(first[0]) == {conv}:
                folds[first[0]] = conv
        return folds


@contextmanager
def _watched(model: nn.Module, trial: Trial, reads: _Reads) -> Iterator[None]:
    """Note the inputs and outputs of SN layers and convolutions while a model runs."""

    def enter(module: nn.Module, args: tuple) -> None:
        reads.inside += 1
        if not isinstance(module, SwitchNorm):
            reads.read(args[0], '')

    def leave_norm(name: str, args: tuple, output: Tensor) -> None:
        (x,) = args
        trial.inputs.setdefault(name, x.clone())
        trial.outputs.setdefault(name, output.clone())
        reads.inside -= 1
        reads.read(x, name)
        reads.sources.setdefault(name, set()).add(reads.made.get(id(x), (None,))[0])

    def leave_conv(name: str, args: tuple, output: Tensor) -> None:
        trial.conv_inputs.setdefault(name, args[0].clone())
        reads.inside -= 1
        reads.made[id(output)] = (name, output)

    with ExitStack() as stack:
        for name, module in model.named_modules():
            is_norm = isinstance(module, SwitchNorm)
            if not is_norm and not _is_plain_conv(module):
                continue
            leave = leave_norm if is_norm else leave_conv
            stack.callback(module.register_forward_pre_hook(enter).remove)
            hook = _hook(leave, name)
            stack.callback(module.register_forward_hook(hook).remove)
        yield


def _hook(leave: Any, name: str) -> Any:
    return lambda module, args, output: leave(name, args, output)


def _is_plain_conv(module: nn.Module) -> bool:
    """Return whether it is a convolution of torch, or mmcv's wrapper, with a weight of its own."""
    known = type(module).__module__ in ('torch.nn.modules.conv', 'mmcv.cnn.bricks.wrappers')
    return isinstance(module, _CONVS) and known and 'weight' in module._parameters


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
