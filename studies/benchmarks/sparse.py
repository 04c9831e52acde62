"""Inference of one model with BN, SN, sparse SN and exported sparse SN in the same places."""

import copy
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from sn_openmmlab.inference.export.export import build_exported, export
from sn_openmmlab.inference.export.trial import predict
from sn_openmmlab.inference.trained_model import model_config
from sn_openmmlab.layers.switch_norm import SwitchNorm
from studies.benchmarks.memory import peak_bytes
from studies.benchmarks.steps import NORMS, with_norm

BASELINE = 'BN'
CALLS_PER_TURN = 3
# By name: the scopes that the layers choose in turn.
CHOICES = {'all bn': ('bn',), 'in, ln, bn in turn': ('in', 'ln', 'bn')}


def inferences(config: Config) -> dict[str, Callable[[], Any]]:
    """Return one function per variant that predicts on the same random image.

    The weights are random, since what a layer costs depends on its choice alone.

    Args:
        config: of MMDetection or MMPretrain, with SN.
    """
    init_default_scope(config.default_scope)
    models = {BASELINE: _built(config, NORMS['BN']), 'SN': _built(config, NORMS['SN'])}
    for name, scopes in CHOICES.items():
        sparse = _choose(copy.deepcopy(models['SN']), scopes)
        made = export(sparse, config)
        models[f'sparse SN, {name}'] = sparse
        models[f'exported, {name}'] = build_exported(made.config, made.state, config.default_scope)
    return {name: partial(predict, model, config.default_scope) for name, model in models.items()}


def measure(
    functions: Mapping[str, Callable[[], Any]], rounds: int, baseline: str = BASELINE
) -> dict[str, dict]:
    """Return the CPU milliseconds, their ratios to a baseline and the peak memory of each function.

    It is the time that the process worked, on all its threads, and not the time that passed: other
    processes on the same cores matter less. The functions take turns, and a ratio compares the
    medians of one round.

    Args:
        functions: by name, as `inferences` returns them.
        rounds: how often each takes its turn.
        baseline: the name of the function that the others are compared with.
    """
    turns = [{name: _turn(function) for name, function in functions.items()} for _ in range(rounds)]
    return {
        name: dict(
            milliseconds=median(turn[name] for turn in turns),
            ratios=sorted(turn[name] / turn[baseline] for turn in turns),
            bytes=peak_bytes(function, torch.device('cpu')),
        )
        for name, function in functions.items()
    }


def _turn(function: Callable[[], Any]) -> float:
    """Return the median CPU milliseconds of some calls, after one to warm up."""
    function()
    times = []
    for _ in range(CALLS_PER_TURN):
        start = time.process_time()
        function()
        times.append((time.process_time() - start) * 1e3)
    return median(times)


def _built(config: Config, norm: dict[str, Any]) -> nn.Module:
    model = with_norm(ConfigDict(model_config(config)).to_dict(), norm)
    if config.default_scope == 'mmdet':
        # The same number of regions and no detections, whatever the random weights are.
        model['test_cfg']['rpn']['nms']['iou_threshold'] = 1.0
        model['test_cfg']['rcnn']['score_thr'] = 1.0
    torch.manual_seed(0)
    return MODELS.build(ConfigDict(model)).eval()


def _choose(model: nn.Module, scopes: tuple[str, ...]) -> nn.Module:
    layers = [layer for layer in model.modules() if isinstance(layer, SwitchNorm)]
    for i, layer in enumerate(layers):
        choice = torch.tensor(layer.scopes.index(scopes[i % len(scopes)]))
        layer.choose(choice, choice)
    return model
