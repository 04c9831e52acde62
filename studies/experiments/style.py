"""The experiment on style transfer (App. F): the example with IN, BN and SN, two seeds each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from examples import stylize_with_sn as example
from sn_openmmlab.analysis.importance import importance_ratios, mean_ratios
from sn_openmmlab.errors import UsageError
from studies.demo.backgrounds import load_photograph
from studies.demo.mosaic import mosaic
from studies.experiments.records import Record

SEEDS = (0, 1)
TRAINED, TESTED = 150, 50
STEPS = 400
# What the pictures show: free photographs, unlike those of the training, at twice their side.
SHOWN, SHOWN_SIDE = ('chelsea.png', 'coffee.png', 'rocket.jpg'), 2 * example.SIDE
LOSSES = ('content', 'style', 'loss')
# Steps of which a record keeps the mean.
WINDOW = 20


def load(folder: Path) -> tuple[Tensor, Tensor]:
    """Return the photographs to train on and those to test on, in order of name.

    Raises:
        UsageError: the folder does not have that many images.
    """
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if len(files) < TRAINED + TESTED:
        raise UsageError(f'{folder} is no folder of {TRAINED + TESTED} images: name one.')
    images = torch.stack([example.read(file) for file in files[: TRAINED + TESTED]])
    return images[:TRAINED], images[TRAINED:]


def shown_photographs() -> Tensor:
    """Return the photographs to show."""
    pixels = (load_photograph('skimage.data', name) for name in SHOWN)
    return torch.stack([example.as_tensor(Image.fromarray(p), SHOWN_SIDE) for p in pixels])


def style_picture(work_dir: Path) -> Tensor:
    """Write the style picture as a file, and return it as the example reads it."""
    file = work_dir / 'style.png'
    Image.fromarray(mosaic()).save(file)
    return example.read(file)


def train_missing(photographs: Tensor, style: Tensor, work_dir: Path) -> None:
    """Train what is missing, a seed of each norm after the other, each into a file."""
    for seed in SEEDS:
        for norm in example.NORMS:
            file = _file(work_dir, norm, seed)
            if file.is_file():
                continue
            network, losses = example.train(norm, photographs, style, STEPS, seed)
            saved = {'network': network.state_dict(), 'losses': losses, 'settings': _settings()}
            unfinished = file.with_suffix('.part')
            torch.save(saved, unfinished)
            unfinished.rename(file)
            print(norm, seed, losses[-WINDOW:].mean(0).tolist(), flush=True)


def read_network(work_dir: Path, norm: str, seed: int) -> tuple[example.Stylizer, Tensor]:
    """Return a trained network in evaluation, and its losses at each step, (steps, 2).

    Raises:
        UsageError: it was trained with other settings.
    """
    file = _file(work_dir, norm, seed)
    saved = torch.load(file, weights_only=True)
    if saved['settings'] != _settings():
        raise UsageError(
            f'{file} was trained with {saved["settings"]}, not with {_settings()}: remove it.'
        )
    network = example.Stylizer(norm).eval()
    network.load_state_dict(saved['network'])
    return network, saved['losses']


def read_records(work_dir: Path, photographs: Tensor, style: Tensor) -> Iterator[Record]:
    """Yield the record of each network, with its losses on photographs that it has not seen."""
    perception = example.Perception(style)
    for norm in example.NORMS:
        for seed in SEEDS:
            network, losses = read_network(work_dir, norm, seed)
            windows = losses.reshape(-1, WINDOW, 2).mean(1)
            with torch.no_grad():
                tested = perception(example.stylize(network, photographs), photographs)
            metrics = {
                **_by_name(*windows.T),
                **{f'test {name}': [loss] for name, loss in _by_name(*tested).items()},
            }
            ratios = mean_ratios(importance_ratios(network)) if norm == 'SN' else {}
            yield Record(norm, example.BATCH, seed, metrics, ratios)


def stylized(work_dir: Path, photographs: Tensor, seed: int) -> dict[str, Tensor]:
    """Return the photographs stylized by the networks of a seed, by norm."""
    networks = {norm: read_network(work_dir, norm, seed)[0] for norm in example.NORMS}
    return {norm: example.stylize(network, photographs) for norm, network in networks.items()}


def _by_name(content: Tensor, style: Tensor) -> dict[str, Any]:
    """Return the losses, and the sum of both that training minimizes, as numbers."""
    loss = content + example.STYLE_WEIGHT * style
    return {name: x.tolist() for name, x in zip(LOSSES, (content, style, loss), strict=True)}


def _file(work_dir: Path, norm: str, seed: int) -> Path:
    return work_dir / f'{norm}_s{seed}.pth'


def _settings() -> dict[str, Any]:
    return {
        'steps': STEPS,
        'side': example.SIDE,
        'batch': example.BATCH,
        'learning rate': example.LEARNING_RATE,
        'style weight': example.STYLE_WEIGHT,
    }
