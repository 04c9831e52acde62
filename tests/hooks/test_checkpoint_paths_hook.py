"""A resumed training removes no file outside its folder, whatever its checkpoint says."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import CheckpointHook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from sn_openmmlab.hooks import checkpoint_paths_hook
from sn_openmmlab.hooks.checkpoint_paths_hook import CheckpointPathsHook, checkpoint_folder

_numbers = itertools.count()
BEST = dict(save_best='test/score', rule='greater')


class Line(BaseModel):
    """The smallest model of MMEngine."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, inputs: torch.Tensor, mode: str) -> Any:
        y = self.layer(inputs)
        return {'loss': y.square().mean()} if mode == 'loss' else [y]


class Rising(BaseMetric):
    """A metric that is better at each evaluation of this process."""

    default_prefix = 'test'
    score = 0

    def process(self, data_batch: Any, data_samples: Any) -> None:
        self.results.append(0)

    def compute_metrics(self, results: list) -> dict[str, int]:
        Rising.score += 1
        return {'score': Rising.score}


def train(
    work_dir: Path,
    epochs: int,
    start: Path | None = None,
    own: bool = True,
    resume: bool = True,
    **options: Any,
) -> Runner:
    """Train for some epochs, with a new best checkpoint after each."""
    data = DataLoader([{'inputs': torch.ones(2)}] * 2)
    runner = Runner(
        Line(),
        work_dir=str(work_dir),
        train_dataloader=data,
        train_cfg=dict(by_epoch=True, max_epochs=epochs),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        val_dataloader=data,
        val_cfg=dict(),
        val_evaluator=[Rising()],
        default_hooks=dict(checkpoint=dict(type='CheckpointHook', **{**BEST, **options})),
        custom_hooks=[dict(type='CheckpointPathsHook')] if own else [],
        load_from=str(start) if start else None,
        resume=resume and start is not None,
        log_level='WARNING',
        # Runs of the same name share their message hub.
        experiment_name=f'line-{next(_numbers)}',
    )
    runner.train()
    return runner


def crafted(folder: Path, **info: Any) -> Path:
    """Return a checkpoint after one epoch of a training, with other infos in its message hub."""
    train(folder, 1)
    checkpoint = torch.load(folder / 'epoch_1.pth', weights_only=False)
    hub = checkpoint['message_hub']
    hub['runtime_info'].update(info)
    hub['resumed_keys'].update(dict.fromkeys(info, True))
    torch.save(checkpoint, folder / 'crafted.pth')
    return folder / 'crafted.pth'


@pytest.fixture
def victims(tmp_path: Path) -> dict[str, Path]:
    """Return a file, a folder with a file and a link to it, outside of every work folder."""
    folder = tmp_path / 'victim'
    folder.mkdir()
    (folder / 'best_thesis.pth').write_text('years of work')
    (tmp_path / 'best_link').symlink_to(folder)
    return {'file': folder / 'best_thesis.pth', 'folder': folder, 'link': tmp_path / 'best_link'}


@pytest.mark.parametrize('kind', ['file', 'folder', 'link'])
@pytest.mark.parametrize('own', [True, False], ids=['with', 'mmengine alone'])
def test_best_checkpoint_elsewhere_is_not_removed(
    kind: str, own: bool, victims: dict[str, Path], tmp_path: Path
) -> None:
    start = crafted(tmp_path / 'first', best_ckpt=str(victims[kind]), best_score=-1)
    if kind == 'link' and not own:
        # mmengine alone tries to, but cannot remove a link like a folder.
        with pytest.raises(OSError, match='symbolic link'):
            train(tmp_path / 'work', 2, start, own)
        return
    runner = train(tmp_path / 'work', 2, start, own)
    # MMEngine alone removes it, so the test would notice.
    assert victims['file'].exists() == own
    assert Path(runner.message_hub.get_info('best_ckpt')).parent == tmp_path / 'work'
    assert (tmp_path / 'work/best_test_score_epoch_2.pth').is_file()


@pytest.mark.parametrize('resume', [True, False])
def test_lost_path_is_named_only_if_it_would_be_used(
    resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    monkeypatch.setattr(checkpoint_paths_hook, 'print_log', lambda text, **_: said.append(text))
    start = crafted(tmp_path / 'first', last_ckpt='elsewhere/epoch_9.pth', best_ckpt=None)
    train(tmp_path / 'work', 2, start, resume=resume)
    assert [text.split(',')[0] for text in said] == ['last_ckpt', 'best_ckpt'] * resume


@pytest.mark.parametrize(
    'path',
    ['../victim/best_thesis.pth', 'best_/../../victim', '..', '.', '', '/', 'a\0b', 7, None, ['x']],
)
def test_odd_paths_are_forgotten(path: Any, victims: dict[str, Path], tmp_path: Path) -> None:
    start = crafted(tmp_path / 'first', best_ckpt=path, best_score=-1, last_ckpt=path)
    train(tmp_path / 'work', 2, start)
    assert victims['file'].exists()
    saved = torch.load(tmp_path / 'work/epoch_2.pth', weights_only=True)['message_hub']
    assert saved['runtime_info']['last_ckpt'] == str(tmp_path / 'work/epoch_2.pth')


def test_own_best_checkpoint_is_replaced_as_before(tmp_path: Path) -> None:
    work = tmp_path / 'work'
    train(work, 1)
    assert (work / 'best_test_score_epoch_1.pth').is_file()
    train(work, 2, work / 'epoch_1.pth')
    assert [file.name for file in work.glob('best_*')] == ['best_test_score_epoch_2.pth']


def test_best_checkpoint_of_a_moved_folder_is_found(tmp_path: Path) -> None:
    train(tmp_path / 'before', 1)
    (tmp_path / 'before').rename(tmp_path / 'work')
    train(tmp_path / 'work', 2, tmp_path / 'work/epoch_1.pth')
    names = [file.name for file in (tmp_path / 'work').glob('best_*')]
    assert names == ['best_test_score_epoch_2.pth']


def test_several_best_checkpoints(victims: dict[str, Path], tmp_path: Path) -> None:
    start = crafted(tmp_path / 'first', **{'best_ckpt_test/score': str(victims['file'])})
    runner = train(tmp_path / 'work', 1, start)
    assert 'best_ckpt_test/score' not in runner.message_hub.runtime_info
    assert victims['file'].exists()


@pytest.mark.parametrize('ids', [['/../../victim/best_thesis'], 'abc', [None], {1: 2}, 7])
def test_odd_numbers_of_kept_checkpoints_are_forgotten(
    ids: Any, victims: dict[str, Path], tmp_path: Path
) -> None:
    start = crafted(tmp_path / 'first', keep_ckpt_ids=ids)
    (tmp_path / 'work/epoch_').mkdir(parents=True)
    runner = train(tmp_path / 'work', 2, start, max_keep_ckpts=1)
    assert victims['file'].exists()
    assert runner.message_hub.get_info('keep_ckpt_ids') == [2]


def test_kept_checkpoints_are_removed_as_before(tmp_path: Path) -> None:
    work = tmp_path / 'work'
    train(work, 1, max_keep_ckpts=1)
    train(work, 2, work / 'epoch_1.pth', max_keep_ckpts=1)
    assert [file.name for file in work.glob('epoch_*')] == ['epoch_2.pth']


def test_the_folder_is_that_of_the_checkpoint_hook(tmp_path: Path) -> None:
    runner = train(tmp_path / 'work', 1, out_dir=str(tmp_path / 'out'))
    (hook,) = (hook for hook in runner.hooks if isinstance(hook, CheckpointHook))
    assert hook.out_dir == str(tmp_path / 'out/work')
    fresh = Runner(
        Line(),
        work_dir=str(tmp_path / 'work'),
        default_hooks=dict(checkpoint=dict(type='CheckpointHook', out_dir=str(tmp_path / 'out'))),
        experiment_name=f'line-{next(_numbers)}',
    )
    assert checkpoint_folder(fresh) == str(tmp_path / 'out/work')


def test_weights_alone_are_left_as_they_are() -> None:
    for checkpoint in ({'state_dict': {}}, {'message_hub': None}, {'message_hub': {}}):
        before = dict(checkpoint)
        CheckpointPathsHook().after_load_checkpoint(None, checkpoint)
        assert checkpoint == before
