"""Export a trained model to ONNX, for images of any number and size, and check the file.

    python examples/export_to_onnx.py CONFIG CHECKPOINT OUT.onnx

Of a detector, the backbone and the neck are exported; of a segmenter or a classifier, all layers.
The images are those that the data preprocessor gives: RGB or BGR, normalized and padded. It needs
onnx, onnxscript and onnxruntime, and takes a minute or two on a CPU.
"""

import argparse
import sys

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import load_checkpoint
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.functional import interpolate

from sn_openmmlab.checkpoints.files.safe_loading import load_safely

# torch.export makes a size of 1 a constant. So there are two images, and they are large enough for
# two rows and columns at a stride of 128, the largest in a usual neck.
EXAMPLE = (2, 3, 160, 224)
OTHERS = [(1, 3, 224, 160), (3, 3, 136, 200)]
DYNAMIC = {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}
# Both compute in float32, with different orders of summation.
TOLERANCE = 1e-4


class Exported(nn.Module):
    """The part of a model that turns images into a fixed number of tensors."""

    def __init__(self, model: nn.Module, toolbox: str) -> None:
        super().__init__()
        self.model = model
        self.toolbox = toolbox

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the maps of the neck, the logits of the pixels, or those of the classes."""
        if self.toolbox == 'mmdet':
            return self.model.extract_feat(images)
        logits = self.model(images, mode='tensor')
        if self.toolbox == 'mmpretrain':
            return logits
        size, align_corners = images.shape[2:], self.model.align_corners
        return interpolate(logits, size, mode='bilinear', align_corners=align_corners)


def build(config_file: str, checkpoint: str) -> Exported:
    """Return the part of a config's model, in evaluation, with the weights of a checkpoint."""
    config = Config.fromfile(config_file)
    init_default_scope(config.default_scope)
    model = MODELS.build(config.model)
    load_safely()
    load_checkpoint(model, checkpoint, map_location='cpu', strict=True)
    return Exported(model, config.default_scope).eval()


def export(part: nn.Module, file: str) -> None:
    """Write an ONNX file with the weights in it."""
    torch.onnx.export(
        part,
        (torch.randn(EXAMPLE),),
        file,
        input_names=['images'],
        dynamic_shapes=(DYNAMIC,),
        opset_version=18,
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def largest_difference(part: nn.Module, file: str) -> float:
    """Return the largest difference between file and model, relative to the largest value."""
    import onnxruntime  # has no wheel for Python 3.10, where the export works all the same

    session = onnxruntime.InferenceSession(file, providers=['CPUExecutionProvider'])
    differences = []
    for size in (EXAMPLE, *OTHERS):
        images = torch.randn(size)
        with torch.no_grad():
            outputs = part(images)
        expected = [outputs] if isinstance(outputs, Tensor) else outputs
        found = session.run(None, {'images': images.numpy()})
        for one, other in zip(found, expected, strict=True):
            distance = (torch.from_numpy(one) - other).abs().max() / other.abs().max()
            differences.append(float(distance))
    return max(differences)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('config', help='a config of MMDetection, MMSegmentation or MMPretrain')
    parser.add_argument('checkpoint', help='the trained weights')
    parser.add_argument('out', help='the ONNX file to write')
    args = parser.parse_args()

    part = build(args.config, args.checkpoint)
    export(part, args.out)
    difference = largest_difference(part, args.out)
    print(f'{args.out}: differs from the model by {difference:.1e} of the largest value at most.')
    if not difference < TOLERANCE:
        sys.exit(f'This is more than {TOLERANCE:.0e}: do not use the file.')


if __name__ == '__main__':
    main()
