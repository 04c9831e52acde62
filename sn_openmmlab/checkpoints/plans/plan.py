"""Which weight of a file becomes which of a model, and what of either is left over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sn_openmmlab.checkpoints.names import few, few_misfits
from sn_openmmlab.checkpoints.plans.resnet import Shape
from sn_openmmlab.errors import UsageError


@dataclass(frozen=True)
class Plan:
    """A conversion before it is done.

    Attributes:
        layout: the name of the layout of the file.
        title: what the file is, for people.
        weights: those of the file.
        pairs: name in the file → name in the model, where the shape fits.
        expected: name in the model → shape there.
        dropped: names in the file that the model does not take, as the classifier.
        left_over: names in the file that the layout does not have.
        missing: names in the model that nothing in the file becomes.
        misfits: name in the file → the shape that it should have.
    """

    layout: str
    title: str
    weights: Mapping[str, Tensor]
    pairs: Mapping[str, str]
    expected: Mapping[str, Shape]
    dropped: list[str]
    left_over: list[str]
    missing: list[str]
    misfits: Mapping[str, Shape]

    def check(self) -> None:
        """Raise UsageError, which names the weights, unless everything fits."""
        faults = []
        if self.missing:
            faults.append(f'lacks {few(self.missing)}')
        if self.misfits:
            shapes = {
                name: (self.weights[name].shape, shape) for name, shape in self.misfits.items()
            }
            faults.append(f'has {few_misfits(shapes)}')
        if self.left_over:
            faults.append(f'has besides {few(self.left_over)}')
        if faults:
            raise UsageError(f'it looks like {self.title}, but {", and ".join(faults)}.')
        check_usable({name: self.weights[name] for name in self.pairs})

    def under(self, prefix: str) -> 'Plan':
        """Return the plan of a model that has this one as its part ``prefix``."""
        return replace(
            self,
            pairs={source: prefix + target for source, target in self.pairs.items()},
            expected={prefix + target: shape for target, shape in self.expected.items()},
            missing=[prefix + target for target in self.missing],
        )

    def convert(self) -> dict[str, Tensor]:
        """Return the weights of the model, each in memory of its own."""
        return {
            target: _copy(self.weights[source]).reshape(self.expected[target])
            for source, target in self.pairs.items()
        }


def make_plan(
    layout: str,
    title: str,
    weights: Mapping[str, Tensor],
    targets: Mapping[str, str | None],
    expected: Mapping[str, Shape],
    source_shape: Callable[[str, Shape], Shape],
) -> Plan:
    """Hold what the weights of a file could become against what a model has.

    Args:
        layout: see :class:`Plan`, as ``title``, ``weights`` and ``expected``.
        title: likewise.
        weights: likewise.
        targets: name in the file → what it is called in the model, or None; what is not named is
            dropped.
        expected: likewise.
        source_shape: (name in the model, shape there) → shape in the file.
    """
    pairs, left_over, misfits, found = {}, [], {}, set()
    for source, target in targets.items():
        if target not in expected or target in found:
            left_over.append(source)
            continue
        found.add(target)
        shape = source_shape(target, expected[target])
        if weights[source].shape == shape:
            pairs[source] = target
        else:
            misfits[source] = shape
    return Plan(
        layout,
        title,
        weights,
        pairs,
        expected,
        dropped=[name for name in weights if name not in targets],
        left_over=left_over,
        missing=[name for name in expected if name not in found],
        misfits=misfits,
    )


def check_usable(weights: Mapping[str, Tensor]) -> None:
    """Raise UsageError, which names the weights, where a network could not compute with them.

    Each has to be dense, of floating point (or a counter), and finite; no variance is negative.
    """
    odd = [name for name, weight in weights.items() if not _is_dense(weight)]
    if odd:
        raise UsageError(
            f'these are not dense tensors of floating point: {few(odd)}; save the weights as such.'
        )
    broken = [name for name, weight in weights.items() if not _is_sound(name, weight)]
    if broken:
        raise UsageError(
            f'these hold NaN, infinity or a negative variance: {few(broken)}; take weights of a '
            'training that did not diverge.'
        )


def _is_dense(weight: Tensor) -> bool:
    if weight.layout != torch.strided or weight.is_meta or weight.is_quantized:
        return False
    # A small file can hold a huge tensor, of one number that is repeated.
    whole = weight.untyped_storage().nbytes() >= weight.numel() * weight.element_size()
    return whole and (weight.is_floating_point() or weight.dim() == 0)


def _is_sound(name: str, weight: Tensor) -> bool:
    # In float64, since not every type has these.
    values = weight.double()
    return bool(values.isfinite().all()) and not (
        name.endswith('running_var') and bool((values < 0).any())
    )


def _copy(weight: Tensor) -> Tensor:
    return weight.detach().clone(memory_format=torch.contiguous_format)
