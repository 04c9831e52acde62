"""Train video classifiers on clips of moving digits, from networks for images and from scratch.

    python -m examples.video_with_sn [EPOCHS]

As in the paper's Table 6, a ResNet is trained on images and then inflated: its kernels get a third
dimension. Here an image shows a digit, and a clip a digit that moves right, down, left or up, which
no single frame tells. Run it at the root of the repository. It needs MMDetection and the demo
extra, and takes about three minutes on one CPU core.
"""

import sys

import torch
from mmdet.models.backbones import ResNet
from torch import Tensor, nn
from torch.nn import functional

from sn_openmmlab import inflate_module
from studies.demo.clips import DIRECTIONS, moving_digits

NORMS = {'BN': dict(type='BN'), 'GN': dict(type='GN', num_groups=8), 'SN': dict(type='SN')}
IMAGES, CLIPS, TEST, FRAMES = 3000, 200, 300, 8
EPOCHS = 6


class Classifier(nn.Module):
    """The first two stages of a narrow ResNet-18, for images or, once inflated, for clips."""

    def __init__(self, classes: int, norm_cfg: dict) -> None:
        super().__init__()
        self.backbone = ResNet(
            18,
            base_channels=16,
            num_stages=2,
            strides=(1, 2),
            dilations=(1, 1),
            out_indices=(1,),
            norm_cfg=norm_cfg,
            norm_eval=False,
        )
        self.head = nn.Linear(32, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes for (N, 3, H, W) or (N, 3, T, H, W)."""
        (maps,) = self.backbone(x)
        return self.head(maps.flatten(2).mean(2))


def load(split: str, clips: int, frames: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return clips, (N, 3, T, 32, 32), with their directions and digits, (N,) each."""
    pixels, directions, digits = map(torch.from_numpy, moving_digits(split, clips, frames))
    return pixels.permute(0, 4, 1, 2, 3).float() / 128 - 1, directions, digits


def train(network: nn.Module, x: Tensor, labels: Tensor, epochs: int, batch: int) -> None:
    """Train a network on images or clips and their classes."""
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    steps = epochs * (len(x) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.003, steps)
    network.train()
    for _ in range(epochs):
        for chosen in torch.randperm(len(x)).split(batch)[: len(x) // batch]:
            optimizer.zero_grad()
            functional.cross_entropy(network(x[chosen]), labels[chosen]).backward()
            optimizer.step()
            schedule.step()


@torch.no_grad()
def accuracy(network: nn.Module, x: Tensor, labels: Tensor) -> float:
    """Return the percentage of images or clips whose class the network tells."""
    network.eval()
    guesses = torch.cat([network(part).argmax(1) for part in x.split(100)])
    return 100 * (guesses == labels).float().mean().item()


def compare(norm: str, seed: int = 0, epochs: int = EPOCHS) -> tuple[dict[str, float], nn.Module]:
    """Train a network on images, then two on clips: that one inflated, and one from scratch.

    Returns:
        The accuracies on data of other digits, and the network that started from images.
    """
    torch.manual_seed(seed)
    images, _, digits = load('train', IMAGES, 1)
    network = Classifier(10, NORMS[norm])
    train(network, images[:, :, 0], digits, 2 * epochs, batch=64)
    images, _, digits = load('val', TEST, 1)
    found = {'digits in images': accuracy(network, images[:, :, 0], digits)}
    clips, directions, _ = load('train', CLIPS, FRAMES)
    test_clips, test_directions, _ = load('val', TEST, FRAMES)
    for start in ('from scratch', 'from images'):
        video = network if start == 'from images' else Classifier(10, NORMS[norm])
        video.head = nn.Linear(32, len(DIRECTIONS))
        inflate_module(video)
        train(video, clips, directions, epochs, batch=16)
        found[f'directions in clips, {start}'] = accuracy(video, test_clips, test_directions)
    return found, video


def main() -> None:
    """Compare the starts with each norm, and print the accuracies."""
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else EPOCHS
    for norm in NORMS:
        found, _ = compare(norm, epochs=epochs)
        print(f'{norm}:', '; '.join(f'{what} {value:.1f} %' for what, value in found.items()))


if __name__ == '__main__':
    main()
