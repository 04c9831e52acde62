"""Read digits row by row with an LSTM whose gates and state are normalized by LN, GN and SN.

    python examples/lstm_with_sn.py [EPOCHS]

The paper's App. G mixes LN and GN in an LSTM, where batch statistics do not apply. This one needs
torch and scikit-learn, reads the 8x8 digits that come with scikit-learn as sequences of 8 rows, and
takes about a minute on one CPU core.
"""

import sys

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from sn_openmmlab import SwitchNorm

# What each norm mixes. With one scope, SN is that norm.
NORMS = {'LN': ('ln',), 'GN': ('gn',), 'SN': ('ln', 'gn')}
EPOCHS, BATCH, HIDDEN = 10, 64, 64
# The digits before this one and those from it on were written on different forms.
FIRST_TEST_DIGIT = 1415


class NormLSTMCell(nn.Module):
    """An LSTM cell that normalizes what enters its four gates, and its state before the output.

    The groups of `'gn'` are the four gates, and four parts of the state.
    """

    def __init__(self, inputs: int, hidden: int, scopes: tuple[str, ...]) -> None:
        super().__init__()
        self.from_input = nn.Linear(inputs, 4 * hidden, bias=False)
        self.from_hidden = nn.Linear(hidden, 4 * hidden, bias=False)
        self.norm_input = SwitchNorm(4 * hidden, scopes=scopes, num_groups=4)
        self.norm_hidden = SwitchNorm(4 * hidden, scopes=scopes, num_groups=4)
        self.norm_state = SwitchNorm(hidden, scopes=scopes, num_groups=4)

    def forward(self, x: Tensor, hidden: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next hidden values and state, (N, hidden) each, after the inputs `x`."""
        gates = self.norm_input(self.from_input(x)) + self.norm_hidden(self.from_hidden(hidden))
        enter, forget, output, new = gates.chunk(4, dim=1)
        state = forget.sigmoid() * state + enter.sigmoid() * new.tanh()
        return output.sigmoid() * self.norm_state(state).tanh(), state


class RowReader(nn.Module):
    """Read an image row by row, and tell its class after the last one."""

    def __init__(self, width: int, classes: int, scopes: tuple[str, ...]) -> None:
        super().__init__()
        self.cell = NormLSTMCell(width, HIDDEN, scopes)
        self.head = nn.Linear(HIDDEN, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the scores of the classes, (N, classes), for (N, height, width)."""
        hidden = state = images.new_zeros(len(images), HIDDEN)
        for row in images.unbind(dim=1):
            hidden, state = self.cell(row, hidden, state)
        return self.head(hidden)


def train(norm: str, seed: int = 0, epochs: int = EPOCHS) -> tuple[RowReader, list[float]]:
    """Train a reader, and return it with the share of test digits that it got after each epoch."""
    torch.manual_seed(seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    reader = RowReader(8, 10, NORMS[norm])
    optimizer = torch.optim.Adam(reader.parameters(), lr=0.005)
    accuracies = []
    for _ in range(epochs):
        for chosen in torch.randperm(FIRST_TEST_DIGIT).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(reader(images[chosen]), labels[chosen]).backward()
            optimizer.step()
        with torch.no_grad():
            guesses = reader(images[FIRST_TEST_DIGIT:]).argmax(dim=1)
        accuracies.append((guesses == labels[FIRST_TEST_DIGIT:]).float().mean().item())
    return reader, accuracies


def shown(layer: SwitchNorm, ratios: list[float]) -> str:
    """Return the ratios of a layer as text, such as `'ln 0.500, gn 0.500'`."""
    pairs = zip(layer.scopes, ratios, strict=True)
    return ', '.join(f'{scope} {ratio:.3f}' for scope, ratio in pairs)


def main() -> None:
    """Train one reader per norm, and print what it reached and what the layers of SN learned."""
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else EPOCHS
    for norm in NORMS:
        reader, accuracies = train(norm, epochs=epochs)
        print(f'{norm}: {100 * accuracies[-1]:.1f} % of the test digits after epoch {epochs}')
    for name, layer in reader.cell.named_children():
        if isinstance(layer, SwitchNorm):
            means, variances = (ratios.tolist() for ratios in layer.importance_ratios())
            print(f'{name}: means {shown(layer, means)}; variances {shown(layer, variances)}')


if __name__ == '__main__':
    main()
