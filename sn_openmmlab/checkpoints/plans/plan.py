"""Which weight of a file becomes which weight of a model, and what is left over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sn_openmmlab.checkpoints.names import few, few_misfits
from sn_openmmlab.checkpoints.plans.layout import Layout
from sn_openmmlab.checkpoints.plans.norm_shapes import Shape
from sn_openmmlab.checkpoints.usable import check_usable
from sn_openmmlab.errors import UsageError


@dataclass(frozen=True)
class Plan:
    """A conversion before it is carried out.

    Attributes:
        layout: The layout of the file.
        title: What messages call the content of the file.
        weights: The weights of the file.
        pairs: Name in the file → name in the model, if the shape fits.
        expected: Name in the model → shape there.
        dropped: Names in the file that the model does not need, such as the classifier.
        left_over: Names in the file that the layout does not have.
        missing: Names in the model that nothing in the file fills.
        misfits: Name in the file → the shape that it should have.
    """

    layout: Layout
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
            faults.append(f'also has {few(self.left_over)}')
        if faults:
            raise UsageError(f'it looks like {self.title}, but {", and ".join(faults)}.')
        check_usable({name: self.weights[name] for name in self.pairs})

    def under(self, prefix: str) -> 'Plan':
        """Return the plan for a model that has this one as its part `prefix`."""
        return replace(
            self,
            pairs={source: prefix + target for source, target in self.pairs.items()},
            expected={prefix + target: shape for target, shape in self.expected.items()},
            missing=[prefix + target for target in self.missing],
        )

    def convert(self) -> dict[str, Tensor]:
        """Return the weights of the model; they share no memory with those of the file."""
        return {target: self.weight(source, target) for source, target in self.pairs.items()}

    def weight(self, source: str, target: str) -> Tensor:
        """Return a weight of the model, from the weight `source` of the file."""
        return self.fitted(self.weights[source], target)

    def fitted(self, weight: Tensor, target: str) -> Tensor:
        """Return a copy of a weight in the shape of the model."""
        return _copy(weight).reshape(self.expected[target])


def _as_expected(_: str, shape: Shape) -> Shape:
    return shape


def make_plan(
    layout: Layout,
    title: str,
    weights: Mapping[str, Tensor],
    targets: Mapping[str, str | None],
    expected: Mapping[str, Shape],
    source_shape: Callable[[str, Shape], Shape] = _as_expected,
) -> Plan:
    """Compare the weights of a file with those of a model.

    Args:
        layout: As in `Plan`.
        title: As in `Plan`.
        weights: As in `Plan`.
        targets: Name in the file → name in the model, or None if the layout does not have it.
            Weights that are not in `targets` are dropped.
        expected: As in `Plan`.
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


def _copy(weight: Tensor) -> Tensor:
    return weight.detach().clone(memory_format=torch.contiguous_format)
