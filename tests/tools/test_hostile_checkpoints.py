"""Hostile checkpoints end every tool in a sentence, and remove nothing when a training resumes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.hostile.pickles import call, checkpoint, in_zip, list_of, number, text

# 2^60 items in a list that something prints: it would take years.
DOUBLED = b'(]q\x00' + b''.join(
    list_of(b'h' + bytes([i]), b'h' + bytes([i])) + b'q' + bytes([i + 1]) for i in range(60)
)
HOSTILE = {
    'memory': call('builtins.bytearray', number(10**12)),
    'time': DOUBLED + b'th\x3c)R\x86',
    'code': call('os.system', text('touch canary')),
}


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file that would take a terabyte, take years or run code."""
    file = tmp_path / f'{request.param}.pth'
    file.write_bytes(in_zip(checkpoint(HOSTILE[request.param])))
    return file


def test_every_tool_says_one_sentence(
    hostile: Path, classification_config: Path, tiny_classes: Path, fail: Callable
) -> None:
    """The working folder is the one of the test."""
    (image,) = list(tiny_classes.rglob('*.png'))[:1]
    options = '--cfg-options', 'work_dir=work'
    for arguments in (
        ('convert_checkpoint.py', hostile, 'out.pth'),
        ('plot_importance.py', hostile, '--out', 'out'),
        ('sparsify.py', classification_config, hostile, 'out.pth'),
        ('batch_average.py', classification_config, hostile, 'out.pth'),
        ('test.py', classification_config, hostile, '--work-dir', 'work'),
        ('predict.py', classification_config, hostile, image, '--out', 'out'),
        ('train.py', classification_config, *options, f'load_from={hostile}'),
        ('train.py', classification_config, '--resume', hostile, *options),
        *(
            (
                'train.py',
                classification_config,
                *options,
                f'model.backbone.init_cfg.type={kind}',
                f'model.backbone.init_cfg.checkpoint={hostile}',
            )
            for kind in ('Pretrained', 'SNPretrained')
        ),
    ):
        said = fail(*arguments)
        assert str(hostile) in said, (arguments, said)
    assert not list(hostile.parent.rglob('canary'))
    assert not list(hostile.parent.rglob('out*'))


def test_a_resumed_training_removes_nothing_elsewhere(
    repo: Path,
    classification_config: Path,
    classification_run: Path,
    run_tool: Callable,
    tmp_path: Path,
) -> None:
    thesis = tmp_path / 'home/best_thesis'
    thesis.mkdir(parents=True)
    (thesis / 'best_chapter.pth').write_text('years of work')
    work = tmp_path / 'work'
    shutil.copytree(classification_run, work)
    start = next(iter(sorted(work.glob('epoch_*.pth'))))
    held = torch.load(start, weights_only=False)
    hub = held['message_hub']
    hub['runtime_info'].update(
        best_ckpt=str(thesis),
        best_score=-1.0,
        last_ckpt=str(thesis / 'best_chapter.pth'),
        keep_ckpt_ids=['/../../home/best_thesis/best_chapter'],
    )
    hub['resumed_keys'].update(best_ckpt=True, best_score=True)
    torch.save(held, tmp_path / 'crafted.pth')
    run_tool(
        repo / 'tools/train.py',
        classification_config,
        '--work-dir',
        work,
        '--resume',
        tmp_path / 'crafted.pth',
        '--cfg-options',
        f'train_cfg.max_epochs={held["meta"]["epoch"] + 1}',
        'default_hooks.checkpoint.save_best=auto',
        'default_hooks.checkpoint.max_keep_ckpts=1',
    )
    assert (thesis / 'best_chapter.pth').read_text() == 'years of work'
    assert list(work.glob('best_*.pth'))
