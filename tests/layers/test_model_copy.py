"""Copies of models that were compiled, wrapped or run, which leave the original alone."""

import functools
import re

import pytest
import torch
from torch import nn
from torch.nn.parallel import DataParallel

from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.batch_average import batch_average
from sn_openmmlab.layers.model_copy import bare_model, copy_model


class Counter(nn.Module):
    """A model that changes in each call: its weight, a buffer and Python state."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer('calls', torch.zeros(()))
        self.sizes = []

    def forward(self, x):
        with torch.no_grad():
            self.weight.mul_(0.9)
        self.calls += 1
        self.sizes.append(len(x))
        return x * self.weight

    def train_step(self, x):
        return self(x)


def _check_untouched(model):
    assert torch.equal(model.weight, torch.ones(3))
    assert (model.calls, model.sizes) == (0, [])


def _check_copy(model, call):
    copied = copy_model(model)
    y = call(copied, torch.ones(2, 3))
    _check_untouched(model)
    assert (copied.calls, copied.sizes) == (1, [2])
    torch.testing.assert_close(y, torch.full((2, 3), 0.9))


def test_calls_of_the_copy_leave_the_model_as_it_was():
    _check_copy(Counter(), lambda copied, x: copied(x))


@pytest.mark.parametrize('name', ['forward', 'train_step', 'own'])
def test_a_compiled_method_runs_the_copy(name):
    model = Counter()
    setattr(model, name, torch.compile(getattr(model, name, model.forward), backend='eager'))
    _check_copy(model, lambda copied, x: getattr(copied, name)(x))


def test_a_wrapped_method_runs_the_copy():
    model = Counter()
    forward = model.forward
    model.forward = functools.wraps(forward)(lambda x: forward(x))
    _check_copy(model, lambda copied, x: copied(x))


def test_a_partial_method_runs_the_copy():
    model = Counter()
    model.forward = functools.partial(model.forward)
    _check_copy(model, lambda copied, x: copied(x))


def test_functions_that_are_no_methods_are_kept():
    model = Counter()
    model.activate = torch.relu
    model.report = functools.wraps(print)(lambda *args: None)
    copied = copy_model(model)
    assert (copied.activate, copied.report) == (model.activate, model.report)


def test_a_compiled_module_runs_the_copy():
    model = Counter()
    model.compile(backend='eager')
    _check_copy(model, lambda copied, x: copied(x))


@pytest.mark.parametrize('wrap', [DataParallel, lambda m: torch.compile(m, backend='eager')])
def test_bare_model_is_inside_the_wrappers(wrap):
    model = Counter()
    assert bare_model(wrap(model)) is model
    assert bare_model(model) is model


def test_a_weight_that_a_forward_pass_computed_is_copied():
    layer = torch.nn.utils.weight_norm(nn.Linear(3, 3))
    x = torch.ones(2, 3)
    y = layer(x)
    assert not layer.weight.is_leaf
    torch.testing.assert_close(copy_model(layer)(x), y)


def test_a_part_that_cannot_be_copied_is_an_error_in_one_sentence():
    model = nn.Sequential(nn.BatchNorm2d(3))
    model.lock = (number for number in range(3))
    sentence = (
        "Sequential cannot be copied (TypeError: cannot pickle 'generator' object), but the "
        'batches of a batch average run through a copy, so that the model itself does not change: '
        'make copy.deepcopy(model) work.'
    )
    with pytest.raises(UsageError, match=f'^{re.escape(sentence)}$'):
        batch_average(model, [torch.ones(2, 3, 2, 2)], lambda m, x: m(x), batch_norm=True)
