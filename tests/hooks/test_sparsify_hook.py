"""The hook makes a model sparse at its time, and nothing that a run does unmakes it."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.dist import is_distributed
from mmengine.hooks import EMAHook, Hook
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, HOOKS, MODELS
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.checkpoints.trial_loading import unwrapped
from sn_openmmlab.errors import UsageError
from sn_openmmlab.hooks.sparsify_hook import SparsifyHook
from sn_openmmlab.runs.weights.check import check_resume, check_start

# By λ and λ′, set below: (means, variances) of each layer.
CHOSEN = {'a': ((2,), (0,)), 'b': ((1,), (2,))}
EMAS = {
    'params': dict(type='EMAHook', momentum=0.4),
    'buffers': dict(type='EMAHook', momentum=0.4, update_buffers=True),
    'late': dict(type='EMAHook', momentum=0.4, begin_iter=5),
}


class Net(BaseModel):
    """Two SN layers and a convolution."""

    def __init__(self, init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.a = SwitchNorm(4)
        self.conv = nn.Conv2d(4, 4, 1)
        self.b = SwitchNorm(4)
        with torch.no_grad():
            for name, choices in CHOSEN.items():
                layer = getattr(self, name)
                for control, (k,) in zip(
                    (layer.mean_weight, layer.var_weight), choices, strict=True
                ):
                    control[k] = 2

    def forward(self, x: torch.Tensor, mode: str) -> object:
        y = self.b(self.conv(self.a(x))).square().flatten(1)
        return dict(loss=(y * torch.arange(y.shape[1])).mean()) if mode == 'loss' else y


class Images(torch.utils.data.Dataset):
    """Four images, always the same."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return dict(x=torch.arange(i * 24.0, (i + 1) * 24).sin().view(4, 3, 2))


class Watch(Hook):
    """Notes at each step whether the model and its average are sparse, and the ratios."""

    priority = 'VERY_LOW'

    def __init__(self) -> None:
        self.sparse: list[bool] = []

    def after_train_iter(self, runner: Runner, batch_idx: int, *args: object, **kw: object) -> None:
        models = [unwrapped(runner.model), *averages(runner)]
        states = {is_sparse(model) for model in models}
        assert len(states) == 1
        self.sparse.append(states.pop())
        if self.sparse[-1]:
            for model in models:
                check_chosen(model)


class Spoil(Hook):
    """Gives λ of the average another arg-max, at the start."""

    def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: object = None) -> None:
        for model in averages(runner) if runner.iter == 0 else ():
            for layer in (model.a, model.b):
                nn.init.constant_(layer.mean_weight[0], 50)


def averages(runner: Runner) -> list[nn.Module]:
    return [hook.ema_model.module for hook in runner.hooks if isinstance(hook, EMAHook)]


def is_sparse(model: nn.Module) -> bool:
    states = {layer.is_sparse for layer in (model.a, model.b)}
    assert len(states) == 1
    return states.pop()


def check_chosen(model: nn.Module) -> None:
    for name, choices in CHOSEN.items():
        layer = getattr(model, name)
        assert (layer.mean_choice.tolist(), layer.var_choice.tolist()) == tuple(map(list, choices))
        for ratios, (k,) in zip(layer.importance_ratios(), choices, strict=True):
            assert ratios.tolist() == [float(i == k) for i in range(3)]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        register(patch)
        yield


def register(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(MODELS.module_dict, 'Net', Net)
    patch.setitem(DATASETS.module_dict, 'Images', Images)
    for hook in (Watch, Spoil):
        patch.setitem(HOOKS.module_dict, hook.__name__, hook)


def make_config(folder: Path, *hooks: dict, **changes: object) -> Config:
    """Return a config of two iterations an epoch, with weight decay and momentum."""
    optimizer = dict(type='SGD', lr=0.05, momentum=0.9, weight_decay=0.5)
    config = dict(
        default_scope='mmengine',
        model=dict(type='Net'),
        work_dir=str(folder),
        train_dataloader=dict(
            dataset=dict(type='Images'),
            batch_size=2,
            sampler=dict(type='DefaultSampler', shuffle=False),
            collate_fn=dict(type='default_collate'),
        ),
        train_cfg=dict(by_epoch=True, max_epochs=3),
        optim_wrapper=dict(type='OptimWrapper', optimizer=optimizer),
        custom_hooks=[*hooks, dict(type='Watch')],
        experiment_name=f'{folder.parent.name}{folder.name}',
    )
    config.update(changes)
    return Config(config)


def train(config: Config) -> tuple[Runner, list[bool]]:
    """Return the runner after the training, and at which steps it was sparse."""
    runner = Runner.from_cfg(copy.deepcopy(config))
    runner.train()
    return runner, seen_sparse(runner)


def seen_sparse(runner: Runner) -> list[bool]:
    (watch,) = (hook for hook in runner.hooks if isinstance(hook, Watch))
    return watch.sparse


@pytest.mark.parametrize('ema', [None, *EMAS])
def test_model_and_average_become_sparse_at_an_epoch(
    ema: str | None, tmp_path: Path, logged: Callable
) -> None:
    hooks = [EMAS[ema], dict(type='Spoil')] if ema else []
    config = make_config(tmp_path / 'run', *hooks, dict(type='SparsifyHook', begin=1))

    runner = Runner.from_cfg(config)
    messages = [text for _, text in logged(runner.train)]

    assert seen_sparse(runner) == [False, False, True, True, True, True]
    (said,) = (text for text in messages if 'SN is sparse' in text)
    rows = [line.split() for line in said.splitlines()]
    assert ['a', 'bn', 'in', '1'] in rows and ['b', 'ln', 'bn', '1'] in rows
    saved = torch.load(tmp_path / 'run/epoch_3.pth', weights_only=False)
    states = [saved['state_dict']]
    if ema:
        states.append({k[7:]: v for k, v in saved['ema_state_dict'].items() if k != 'steps'})
    for state in states:
        copied = Net()
        copied.load_state_dict(state)
        check_chosen(copied)
    before = torch.load(tmp_path / 'run/epoch_1.pth', weights_only=False)['state_dict']
    assert not any('choice' in name for name in before)
    decayed = runner.model.a.mean_weight[2]
    assert not before['a.mean_weight'][2].isclose(decayed), 'the ratios would not have moved'


def test_by_iterations(tmp_path: Path) -> None:
    hook = dict(type='SparsifyHook', begin=3, by_epoch=False)
    for loop in (dict(by_epoch=True, max_epochs=3), dict(by_epoch=False, max_iters=6)):
        _, sparse = train(make_config(tmp_path / str(loop['by_epoch']), hook, train_cfg=loop))
        assert sparse == [False] * 3 + [True] * 3


@pytest.mark.parametrize(('ema', 'end'), [('params', 1), ('params', 2), ('buffers', 2)])
def test_resumed_is_as_if_it_had_not_ended(ema: str, end: int, tmp_path: Path) -> None:
    hooks = [EMAS[ema], dict(type='SparsifyHook', begin=1)]
    whole = train(make_config(tmp_path / 'whole', *hooks))[0]
    source = str(tmp_path / 'whole' / f'epoch_{end}.pth')
    config = make_config(tmp_path / 'rest', *hooks, resume=True, load_from=source)
    network = Net()
    check_resume(network, source)
    assert not is_sparse(network), 'a check changes nothing'

    rest, sparse = train(config)

    assert sparse == [True] * 2 * (3 - end)
    models = zip((whole.model, *averages(whole)), (rest.model, *averages(rest)), strict=True)
    for expected, found in models:
        torch.testing.assert_close(found.state_dict(), expected.state_dict())


@pytest.mark.parametrize(
    ('start', 'ema'),
    [
        ('load_from', 'params'),
        ('load_from with conversion', 'buffers'),
        ('SNPretrained', 'params'),
        ('SNPretrained', 'buffers'),
    ],
)
def test_a_start_from_sparse_weights_is_sparse(start: str, ema: str, tmp_path: Path) -> None:
    train(make_config(tmp_path / 'first', dict(type='SparsifyHook', begin=0)))
    file = str(tmp_path / 'first/epoch_3.pth')
    hooks = [dict(type='NormCheckHook'), EMAS[ema]]
    changes = dict(load_from=file)
    if start == 'SNPretrained':
        changes = dict(model=dict(type='Net', init_cfg=dict(type=start, checkpoint=file)))
    elif 'conversion' in start:
        hooks.append(dict(type='BatchNormWeightsHook'))
    config = make_config(tmp_path / 'second', *hooks, **changes)
    model = MODELS.build(config.model)
    check_start(model, config)
    assert not is_sparse(model)

    _, sparse = train(config)

    assert sparse == [True] * 6


def test_what_cannot_work_is_said_before_the_training(tmp_path: Path) -> None:
    for begin, kind in ((-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(kind, match='begin must be'):
            SparsifyHook(begin)
    cases = [
        (dict(begin=3), {}, 'begin=3, but the training ends at epoch 3'),
        (dict(begin=6, by_epoch=False), {}, 'begin=6, but the training ends at iter 6'),
        (dict(begin=1), dict(train_cfg=dict(by_epoch=False, max_iters=4)), 'by_epoch=False'),
    ]
    for i, (options, changes, message) in enumerate(cases):
        hook = dict(type='SparsifyHook', **options)
        with pytest.raises(UsageError, match=message):
            Runner.from_cfg(make_config(tmp_path / str(i), hook, **changes)).train()


def on_rank(rank: int, world: int) -> dict[str, torch.Tensor]:
    """Train in several processes, whose averages of buffers are taken; see ``run_ranks``."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=f'sparsify{rank}'))
    with pytest.MonkeyPatch.context() as patch:
        register(patch)
        patch.setenv('LOCAL_RANK', str(rank))
        hooks = [EMAS['params'], dict(type='SyncBuffersHook'), dict(type='SparsifyHook', begin=1)]
        config = make_config(
            folder / 'run',
            *hooks,
            launcher='pytorch',
            model_wrapper_cfg=dict(
                type='MMDistributedDataParallel', device_ids=None, find_unused_parameters=False
            ),
        )
        config.train_dataloader.batch_size = 1
        runner, sparse = train(config)
    assert is_distributed() and sparse == [False] * 2 + [True] * 4
    assert isinstance(runner.model, nn.parallel.DistributedDataParallel)
    return {k: v for k, v in runner.model.module.state_dict().items() if 'num_batches' not in k}


def test_all_ranks_choose_the_same(run_ranks: Callable) -> None:
    first, second = run_ranks(__file__, 2)
    assert 'a.mean_choice' in first
    torch.testing.assert_close(first, second, rtol=0, atol=0)
