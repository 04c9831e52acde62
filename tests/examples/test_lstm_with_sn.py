"""The cell computes the formula of an LSTM with mixed norms, and the example runs."""

import re

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import group_norm, layer_norm

from tests.reference import switch_norm_layer as normalized

pytest.importorskip('sklearn')
from examples.lstm_with_sn import NORMS, NormLSTMCell


@pytest.fixture
def cell() -> NormLSTMCell:
    torch.manual_seed(0)
    cell = NormLSTMCell(3, 8, ('ln', 'gn')).double()
    for parameter in cell.parameters():
        nn.init.normal_(parameter)
    return cell


@pytest.fixture
def inputs() -> list[Tensor]:
    """Return x, hidden values and state of two samples."""
    return [torch.randn(2, n, dtype=torch.float64, requires_grad=True) for n in (3, 8, 8)]


def test_the_cell_is_the_formula(cell: NormLSTMCell, inputs: list[Tensor]) -> None:
    x, hidden, state = inputs
    gates = normalized(cell.norm_input, x @ cell.from_input.weight.T)
    gates = gates + normalized(cell.norm_hidden, hidden @ cell.from_hidden.weight.T)
    i, f, o, g = (gates[:, 8 * k : 8 * (k + 1)] for k in range(4))
    new = torch.sigmoid(f) * state + torch.sigmoid(i) * torch.tanh(g)
    shown = torch.sigmoid(o) * torch.tanh(normalized(cell.norm_state, new))
    for mine, theirs in zip(cell(x, hidden, state), (shown, new), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_gradients_through_two_steps(cell: NormLSTMCell, inputs: list[Tensor]) -> None:
    def two_steps(x: Tensor, hidden: Tensor, state: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        return cell(2 * x, *cell(x, hidden, state))

    controls = [p for name, p in cell.named_parameters() if name.endswith('mean_weight')]
    assert torch.autograd.gradcheck(two_steps, (*inputs, *controls), fast_mode=True)


@pytest.mark.parametrize('scope', ['ln', 'gn'])
def test_each_norm_is_torchs_own(scope: str) -> None:
    cell = NormLSTMCell(3, 8, (scope,))
    for layer in (cell.norm_input, cell.norm_state):
        x = torch.randn(2, layer.num_features)
        expected = layer_norm(x, x.shape[1:]) if scope == 'ln' else group_norm(x, 4)
        torch.testing.assert_close(layer(x), expected)


def test_it_trains_and_prints_accuracy_and_ratios(run_tool, repo) -> None:
    output = run_tool(repo / 'examples/lstm_with_sn.py', 1).stdout
    found = re.findall(
        r'^(\w+): ([\d.]+) % of the test digits after epoch 1$', output, re.MULTILINE
    )
    assert [norm for norm, _ in found] == list(NORMS)
    # One digit in ten is what guessing gets.
    assert all(float(accuracy) > 30 for _, accuracy in found)
    learned = re.findall(r'^norm_\w+: means .*$', output, re.MULTILINE)
    assert len(learned) == 3
    for line in learned:
        ln, gn, var_ln, var_gn = (float(ratio) for ratio in re.findall(r'0\.\d{3}', line))
        assert ln + gn == pytest.approx(1, abs=0.0015)
        assert var_ln + var_gn == pytest.approx(1, abs=0.0015)
        # Half and half at the start.
        assert 0.5 not in (ln, var_ln)


def test_it_stays_short(repo) -> None:
    assert len((repo / 'examples/lstm_with_sn.py').read_text().splitlines()) < 110
