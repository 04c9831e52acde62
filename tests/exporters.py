"""Export a network by torch.export or to ONNX, run the result, and look into its graph."""

import copy
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.utils._pytree import tree_leaves

LEGACY_OPSET = 11  # of MMDeploy
OPSET = 18
DYNAMIC = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}


class Exported(NamedTuple):
    """What an exporter made of a network.

    Attributes:
        run: computes the outputs for images.
        integers: all integers in the graph and in the shapes of its outputs.
        reduced: the dimensions along which it sums, averages and the like.
        nodes: how often each kind of node is in it.
    """

    run: Callable[[Tensor], list[Tensor]]
    integers: set[int]
    reduced: set[int]
    nodes: Counter[str]


def export_program(network: nn.Module, images: Tensor) -> Exported:
    """Export by torch.export, with dynamic number and size of images."""
    program = torch.export.export(network, (images,), dynamic_shapes=(DYNAMIC,))
    calls = [node for node in program.graph.nodes if node.op == 'call_function']
    found = [node.meta['val'].shape for node in calls if isinstance(node.meta['val'], Tensor)]
    leaves = tree_leaves([*found, *(node.args for node in calls)])
    module = program.module()

    def run(images: Tensor) -> list[Tensor]:
        with torch.no_grad():
            return tree_leaves(module(images))

    sums = [node for node in calls if str(node.target).startswith(('aten.sum', 'aten.mean'))]
    return Exported(
        run,
        {leaf for leaf in leaves if type(leaf) is int},
        {dim % node.args[0].meta['val'].dim() for node in sums for dim in node.args[1]},
        Counter(str(node.target) for node in calls),
    )


def export_traced_onnx(network: nn.Module, images: Tensor) -> Exported:
    """Export to ONNX by the exporter that MMDeploy uses, which traces the network."""
    axes = {'images': {0: 'batch', 2: 'height', 3: 'width'}}
    return _onnx(network, images, dynamo=False, opset_version=LEGACY_OPSET, dynamic_axes=axes)


def export_onnx(network: nn.Module, images: Tensor) -> Exported:
    """Export to ONNX by torch.export."""
    shapes = (DYNAMIC,)
    return _onnx(network, images, dynamo=True, opset_version=OPSET, dynamic_shapes=shapes)


def _onnx(network: nn.Module, images: Tensor, **options: Any) -> Exported:
    onnx, onnxruntime, _ = map(pytest.importorskip, ('onnx', 'onnxruntime', 'onnxscript'))
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        torch.onnx.export(
            copy.deepcopy(network),
            (images,),
            file,
            input_names=['images'],
            verbose=False,
            **options,
        )
    session = onnxruntime.InferenceSession(file.getvalue(), providers=['CPUExecutionProvider'])

    def run(images: Tensor) -> list[Tensor]:
        return [torch.from_numpy(y) for y in session.run(None, {'images': images.numpy()})]

    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(file.getvalue()))
    graph = _Graph(model.graph)
    return Exported(run, set(graph.integers()), set(graph.reduced()), graph.nodes())


class _Graph:
    """The graph of an ONNX file."""

    def __init__(self, graph: Any) -> None:
        from onnx import numpy_helper

        self.graph = graph
        self.constants = {
            tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer
        }
        for node in graph.node:
            if node.op_type == 'Constant':
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)

    def nodes(self) -> Counter[str]:
        return Counter(node.op_type for node in self.graph.node if node.op_type != 'Constant')

    def integers(self) -> Iterator[int]:
        for constant in self.constants.values():
            if constant.dtype.kind == 'i':
                yield from constant.flatten().tolist()
        for node in self.graph.node:
            for attribute in node.attribute:
                yield from (attribute.i, *attribute.ints)
        for value in (*self.graph.value_info, *self.graph.output):
            yield from (dim.dim_value for dim in value.type.tensor_type.shape.dim)

    def reduced(self) -> Iterator[int]:
        """Yield the dimensions of the Reduce nodes, from the front where their rank is known."""
        ranks = {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in (*self.graph.input, *self.graph.value_info)
        }
        for node in self.graph.node:
            if node.op_type.startswith('Reduce'):
                given = [a.ints for a in node.attribute if a.name == 'axes']
                axes = given[0] if given else self.constants[node.input[1]].tolist()
                rank = ranks.get(node.input[0])
                yield from (axis % rank if rank else axis for axis in axes)
