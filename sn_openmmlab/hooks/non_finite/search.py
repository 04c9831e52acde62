"""The search for the first layer that is not finite, once it is known that something is not."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from sn_openmmlab.analysis.norms import bare_name
from sn_openmmlab.hooks.non_finite.checks import is_non_finite, running_statistics, tensors_in
from sn_openmmlab.hooks.non_finite.finding import Finding, Stage
from sn_openmmlab.hooks.non_finite.images import of_rows

Call = tuple[tuple, dict[str, Any]]
_ALL_FINITE = 'the outputs of all layers are finite, but'


class Repeat:
    """A forward pass that is run once more, without gradients, to watch its layers.

    Attributes:
        order: the names of the modules, in the order in which their calls ended.
        finding: the first input, output or loss that is not finite, or None.

    Args:
        model: as it was before the pass: the search takes time, the watching of every pass would
            take more.
        call: the arguments of the pass.
        paths: of the images.
    """

    def __init__(self, model: nn.Module, call: Call, paths: Sequence[str]) -> None:
        self.order: list[str] = []
        self.finding: Finding | None = None
        self._paths = paths
        for tensor in tensors_in(call):
            self._look(tensor, Stage.INPUT, 'the input of the model is not finite')
        args, kwargs = call
        with ExitStack() as stack, torch.no_grad():
            for name, module in model.named_modules():
                if name:
                    handle = module.register_forward_hook(partial(self._ended, name))
                    stack.callback(handle.remove)
            # To the end, since layers that communicate wait for every process.
            losses = model(*args, **kwargs)
        for name, value in losses.items() if isinstance(losses, dict) else ():
            for tensor in tensors_in(value):
                self._look(tensor, Stage.LOSS, f'{_ALL_FINITE} {name} is not')

    def _ended(self, name: str, module: nn.Module, args: tuple, output: Any) -> None:
        for tensor in tensors_in(output):
            self._look(tensor, Stage.LAYER, partial(_layer, name, module))
        self.order.append(name)

    def _look(self, tensor: Tensor, stage: Stage, what: str | Callable[[], str]) -> None:
        if self.finding is None and is_non_finite(tensor):
            said = what if isinstance(what, str) else what()
            self.finding = Finding(stage, len(self.order), said, of_rows(self._paths, tensor))


def in_statistics(model: nn.Module, paths: Sequence[str]) -> Finding | None:
    """Return the first running statistic that is not finite."""
    for i, (name, statistic) in enumerate(running_statistics(model).items()):
        if is_non_finite(statistic):
            said = f'{_ALL_FINITE} {bare_name(name)} is not'
            return Finding(Stage.STATISTIC, i, said, _named(paths))
    return None


def in_gradients(model: nn.Module, order: Sequence[str], paths: Sequence[str]) -> Finding | None:
    """Return the first gradient of the backward pass that is not finite.

    Args:
        model: with its gradients.
        order: of the modules in the forward pass, as `Repeat` found it.
        paths: of the images.
    """
    modules = dict(model.named_modules())
    backward = [*dict.fromkeys(reversed(order)), *modules]
    for i, name in enumerate(backward):
        for own, parameter in modules[name].named_parameters(name, recurse=False):
            if parameter.grad is not None and is_non_finite(parameter.grad):
                first = (
                    f'in the backward pass the gradient of {bare_name(own)} is the first that is'
                )
                said = f'{_ALL_FINITE} {first} not'
                return Finding(Stage.GRADIENT, i, said, _named(paths))
    return None


def search(
    model: nn.Module,
    call: Call | None,
    paths: Sequence[str],
    repeating: Callable[[], AbstractContextManager],
) -> Finding:
    """Return the first place of a training step that is not finite.

    Args:
        model: without wrappers, after the backward pass.
        call: the arguments of its forward pass; None if it had none.
        paths: of the images.
        repeating: the surroundings in which the forward pass can be repeated.
    """
    if call is None:
        return _unknown('the model computes its loss outside of its forward', paths)
    statistic = in_statistics(model, paths)
    try:
        with repeating():
            repeat = Repeat(model, call, paths)
    except Exception as error:  # Of the model, and no reason to hide what is known.
        said = f'the forward pass cannot be repeated ({type(error).__name__}: {error})'
        return _unknown(said.replace('\n', ' '), paths)
    found = repeat.finding or statistic or in_gradients(model, repeat.order, paths)
    return found or _unknown('all is finite when the forward pass is repeated', paths)


def _unknown(reason: str, paths: Sequence[str]) -> Finding:
    return Finding(Stage.UNKNOWN, 0, f'no layer was found, since {reason}', _named(paths))


def _named(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if path]


def _layer(name: str, module: nn.Module) -> str:
    said = f'{bare_name(name)} ({type(module).__name__}) is the first layer whose output is not'
    own = next((n for n in _own_non_finite(module)), None)
    return f'{said}, and its own {own} is not finite either' if own else said


def _own_non_finite(module: nn.Module) -> Iterator[str]:
    tensors = {**module._parameters, **module._buffers}
    yield from (name for name, x in tensors.items() if x is not None and is_non_finite(x))
