"""The hook converts BatchNorm in load_from, before anything else sees the weights."""

import copy
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import MODELS
from mmengine.runner import Runner
from torch import nn

from sn_openmmlab import SwitchNorm
from sn_openmmlab.errors import UsageError
from sn_openmmlab.runs.weights.check import check_start


class Small(BaseModel):
    """A model of the user with a norm of each kind, whose last step overwrites what it loads."""

    def __init__(self, **norm: object) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 1)
        self.bn1 = nn.BatchNorm2d(4)
        self.gn = nn.GroupNorm(2, 4)
        self.bn2 = nn.BatchNorm2d(4).requires_grad_(False)

    def init_weights(self) -> None:
        super().init_weights()
        nn.init.constant_(self.conv.weight, 7)

    def forward(self, x: torch.Tensor, mode: str) -> dict[str, torch.Tensor]:
        return dict(loss=self.bn2(self.gn(self.bn1(self.conv(x)))).sum())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a checkpoint of the model with BatchNorm, filled with random numbers."""
    model = Small()
    with torch.no_grad():
        for value in (*model.parameters(), model.bn1.running_mean, model.bn2.running_var):
            value.uniform_(0.5, 1.5)
    torch.save(dict(state_dict=model.state_dict(), meta={}), tmp_path / 'bn.pth')
    return tmp_path / 'bn.pth'


@pytest.fixture
def config(file: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Return a config that trains the model with SN from the checkpoint, with EMA."""
    monkeypatch.setitem(MODELS.module_dict, 'Small', Small)
    return Config(
        dict(
            default_scope='mmengine',
            model=dict(type='WithNorm', of='Small'),
            work_dir=str(file.parent / 'run'),
            load_from=str(file),
            train_dataloader=dict(
                dataset=[torch.ones(1, 4, 2)],
                batch_size=1,
                sampler=dict(type='DefaultSampler', shuffle=False),
            ),
            train_cfg=dict(by_epoch=True, max_epochs=1),
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.0)),
            custom_hooks=[
                dict(type='EMAHook'),
                dict(type='BatchNormWeightsHook'),
            ],
            experiment_name=file.parent.name,
        )
    )


def run(config: Config) -> Runner:
    runner = Runner.from_cfg(copy.deepcopy(config))
    runner.train()
    return runner


def test_batch_norm_starts_at_its_ratio_and_group_norm_gives_its_affine_map(
    file: Path, config: Config
) -> None:
    runner = run(config)
    old = torch.load(file)['state_dict']
    model = runner.model
    assert model.conv.weight.equal(old['conv.weight'])
    for name in ('bn1', 'gn', 'bn2'):
        layer = model.get_submodule(name)
        assert type(layer) is SwitchNorm
        assert layer.weight.equal(old[f'{name}.weight'])
        assert layer.bias.equal(old[f'{name}.bias'])
    assert model.bn1.importance_ratios()[0].tolist() == pytest.approx([0.05, 0.05, 0.9])
    assert model.gn.importance_ratios()[1].tolist() == pytest.approx([1 / 3] * 3)
    assert model.bn2.importance_ratios()[0].tolist() == pytest.approx([0, 0, 1])


def test_its_own_checkpoint_is_resumed_unchanged(config: Config) -> None:
    first = run(config).model.state_dict()
    config.update(load_from=None, resume=True)
    config.train_cfg.max_epochs = 2
    second = run(config).model.state_dict()
    for name in ('bn1.mean_weight', 'gn.var_weight', 'bn2.weight', 'conv.weight'):
        assert second[name].equal(first[name])


def test_weights_are_checked_as_the_hook_converts_them(config: Config) -> None:
    check_start(MODELS.build(config.model), config)
    config.custom_hooks = []
    with pytest.raises(UsageError, match='it holds BatchNorm where the model has SN'):
        check_start(MODELS.build(config.model), config)


def test_scopes_without_bn_are_refused(config: Config) -> None:
    config.model.norm_cfg = dict(type='SN', scopes=('in', 'ln'))
    with pytest.raises(UsageError, match="take over the running statistics of bn1: add 'bn'"):
        run(config)


@pytest.fixture
def trained(config: Config) -> Path:
    """Return a checkpoint of the model with SN and one mix per layer, that `config` goes on from.

    The config then asks for two groups of ratios.
    """
    model = run(config).model
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith(('mean_weight', 'var_weight')):
                value.normal_()
    file = Path(config.load_from).with_name('sn.pth')
    torch.save(dict(state_dict=model.state_dict(), meta={}), file)
    config.load_from = str(file)
    config.model.norm_cfg = dict(type='SN', num_ratio_groups=2)
    return file


def test_one_mix_starts_groups_of_ratios(trained: Path, config: Config) -> None:
    check_start(MODELS.build(config.model), config)
    model, old = run(config).model, torch.load(trained)['state_dict']
    for name, value in model.named_parameters():
        repeated = name.endswith(('mean_weight', 'var_weight'))
        assert value.equal(torch.stack([old[name]] * 2) if repeated else old[name]), name


def test_a_training_with_one_mix_is_not_resumed_with_groups(trained: Path, config: Config) -> None:
    config.resume = True
    with pytest.raises(UsageError, match='trained with num_ratio_groups=1, but is built with 2'):
        check_start(MODELS.build(config.model), config)
