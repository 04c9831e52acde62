"""Checkpoint files are read without running code in them, and other files are refused."""

import json
import pickle
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest
import torch

from sn_openmmlab.checkpoints.files.safe_loading import check_resumable, read_checkpoint
from sn_openmmlab.errors import UsageError

Malicious = Callable[[str, bool], tuple[Path, Path]]

# Loads the files in its arguments in every way that MMEngine has, after load_safely().
LOAD_THROUGH_MMENGINE = """
import functools, http.server, json, sys, threading
from mmengine.model import BaseModel
from mmengine.runner import CheckpointLoader, Runner, load_checkpoint
from sn_openmmlab.checkpoints.files.safe_loading import load_safely

class Empty(BaseModel):
    def forward(self, inputs):
        return {}

load_safely()
work_dir, folder, *files = sys.argv[1:]
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f'http://127.0.0.1:{server.server_port}/'
runner = Runner(Empty(), work_dir=work_dir)
ways = {
    'CheckpointLoader': CheckpointLoader.load_checkpoint,
    'load_checkpoint': lambda file: load_checkpoint(Empty(), file),
    'Runner.load_checkpoint': runner.load_checkpoint,
    'Runner.resume': runner.resume,
    'from the web': lambda file: CheckpointLoader.load_checkpoint(
        address + file.rsplit('/', 1)[1], map_location='cpu'
    ),
}
outcomes = []
for file in files:
    for way, load in ways.items():
        try:
            load(file)
        except Exception as error:
            outcomes.append([file, way, type(error).__name__, str(error)])
        else:
            outcomes.append([file, way, 'loaded', ''])
server.shutdown()
print('\\n' + json.dumps(outcomes))
"""

# Resumes training from a checkpoint twice: as MMEngine does, and after load_safely().
RESUME = """
import sys
import torch
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import DataLoader
import sn_openmmlab
from sn_openmmlab.checkpoints.files.safe_loading import load_safely

class Line(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def forward(self, inputs, mode):
        return {'loss': self.layer(inputs).mean()}

work_dir, trusted, guarded = sys.argv[1:]
for name, file in (('trusted', trusted), ('guarded', guarded)):
    if name == 'guarded':
        load_safely()
    runner = Runner(
        Line(),
        work_dir=work_dir,
        experiment_name=name,
        train_dataloader=DataLoader([{'inputs': torch.ones(2)}]),
        train_cfg=dict(by_epoch=True, max_epochs=3),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01)),
        load_from=file,
        resume=True,
    )
    runner.train()
    print(f'{name}: {runner.epoch} epochs, {runner.iter} iterations')
"""


def test_payload_is_refused_and_does_not_run(
    payload: str, zip_format: bool, malicious: Malicious
) -> None:
    file, marker = malicious(payload, zip_format)
    with pytest.raises(UsageError, match='was not loaded') as caught:
        read_checkpoint(file)
    assert str(file) in str(caught.value)
    assert not marker.exists()
    # The same file does run if it is trusted, so the test would notice.
    torch.load(file, weights_only=False)
    assert marker.exists()


def test_the_refusal_names_what_the_file_holds(malicious: Malicious) -> None:
    file, _ = malicious('system', True)
    with pytest.raises(UsageError, match=r'it holds (posix|nt)\.system, which'):
        read_checkpoint(file)


def test_the_refusal_repeats_no_control_characters(tmp_path: Path) -> None:
    file = tmp_path / 'escape.pth'
    file.write_bytes(b'\x80\x02ca\x1b]0;title\x07b\nname\n.')
    with pytest.raises(UsageError) as caught:
        read_checkpoint(file)
    assert str(caught.value).isprintable()


def test_mmengine_refuses_every_payload_in_every_way(
    malicious: Malicious, run_tool: Callable, tmp_path: Path
) -> None:
    pairs = [malicious(name, form) for name in ('system', 'eval') for form in (True, False)]
    pairs.append(malicious('getattr_of_module', True))
    files = [file for file, _ in pairs]
    done = run_tool(
        '-c',
        LOAD_THROUGH_MMENGINE,
        tmp_path / 'work',
        tmp_path,
        *files,
        env={'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD': '1', 'TORCH_HOME': str(tmp_path / 'home')},
    )
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert len(outcomes) == 5 * len(files)
    for file, way, error, message in outcomes:
        assert error != 'loaded', (file, way)
        if way != 'from the web':
            assert error == 'UsageError', (file, way, message)
            assert file in message
        else:
            assert 'Weights only load failed' in message, message
    assert not [marker for _, marker in pairs if marker.exists()]


def test_resuming_runs_no_config_from_the_checkpoint(
    real_checkpoint: Path, run_tool: Callable, tmp_path: Path
) -> None:
    files, markers = [], []
    for name in ('trusted', 'guarded'):
        checkpoint = torch.load(real_checkpoint, weights_only=True)
        markers.append(tmp_path / f'{name}.marker')
        checkpoint['meta']['config'] = f'open({str(markers[-1])!r}, "w").close()'
        del checkpoint['optimizer'], checkpoint['param_schedulers']
        files.append(tmp_path / f'{name}.pth')
        torch.save(checkpoint, files[-1])
    done = run_tool('-c', RESUME, tmp_path / 'work', *files)
    # MMEngine without load_safely() runs it, so the test would notice.
    assert 'trusted: 3 epochs, 9 iterations' in done.stdout
    assert markers[0].exists()
    assert 'guarded: 3 epochs, 9 iterations' in done.stdout
    assert not markers[1].exists()


def test_real_checkpoint_is_read(real_checkpoint: Path) -> None:
    expected = torch.load(real_checkpoint, weights_only=False)['state_dict']
    read = read_checkpoint(real_checkpoint)['state_dict']
    assert list(read) == ['layer.weight', 'layer.bias']
    assert all(torch.equal(read[name], expected[name]) for name in expected)


def test_home_folder_is_understood(real_checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', str(real_checkpoint.parent))
    assert read_checkpoint('~/' + real_checkpoint.name)['meta']['epoch'] == 2


def test_file_cut_anywhere_is_refused(zip_format: bool, tmp_path: Path) -> None:
    whole = tmp_path / 'whole.pth'
    weights = {'state_dict': {'a': torch.ones(9), 'b': torch.nn.Parameter(torch.ones(3, 3))}}
    torch.save(weights, whole, _use_new_zipfile_serialization=zip_format)
    content = whole.read_bytes()
    cut = tmp_path / 'cut.pth'
    for length in range(0, len(content) - 1, max(1, len(content) // 97)):
        cut.write_bytes(content[:length])
        with pytest.raises(UsageError, match=re.escape(str(cut))):
            read_checkpoint(cut)


def test_damaged_file_is_read_or_refused(zip_format: bool, tmp_path: Path) -> None:
    file = tmp_path / 'damaged.pth'
    weights = {'state_dict': {'a': torch.ones(9), 'b': torch.nn.Parameter(torch.ones(3, 3))}}
    torch.save(weights, file, _use_new_zipfile_serialization=zip_format)
    content = file.read_bytes()
    dice = random.Random(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        file.write_bytes(damaged)
        try:
            read_checkpoint(file)
        except UsageError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    'content',
    [
        b'',
        b'hello world text\n',
        b'<!DOCTYPE html><title>404</title>',
        b'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n',
        pickle.dumps({'state_dict': {}}, protocol=4),
        pickle.dumps({'state_dict': {}}, protocol=2),
        bytes(1000),
    ],
    ids=['empty', 'text', 'html', 'git-lfs', 'pickle4', 'pickle2', 'zeros'],
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / 'other.pth'
    file.write_bytes(content)
    with pytest.raises(UsageError, match='is not a checkpoint, or is damaged or cut short'):
        read_checkpoint(file)


def test_other_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / 'archive.pth'
    with zipfile.ZipFile(file, 'w') as archive:
        archive.writestr('readme.txt', 'weights are elsewhere')
    with pytest.raises(UsageError, match='is not a checkpoint'):
        read_checkpoint(file)


def test_whole_model_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / 'model.pth'
    torch.save(torch.nn.Linear(2, 2), file)
    with pytest.raises(UsageError, match=r'it holds torch\.nn\.modules\.linear\.Linear, which'):
        read_checkpoint(file)


@pytest.mark.parametrize(
    'value',
    [[torch.ones(1)], torch.ones(1), None, {1: torch.ones(1)}, {'state_dict': [torch.ones(1)]}],
    ids=['list', 'tensor', 'none', 'numbers', 'list_in_dict'],
)
def test_file_without_names_is_refused(value: object, tmp_path: Path) -> None:
    file = tmp_path / 'value.pth'
    torch.save(value, file)
    with pytest.raises(UsageError, match='holds no weights by name'):
        read_checkpoint(file)


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / 'absent.pth', ''):
        with pytest.raises(UsageError, match='there is no checkpoint file'):
            read_checkpoint(path)
    with pytest.raises(UsageError, match='is a folder: name a checkpoint file in it'):
        read_checkpoint(tmp_path)


def test_training_can_be_resumed_from_a_real_checkpoint(real_checkpoint: Path) -> None:
    check_resumable(real_checkpoint)


def test_training_cannot_be_resumed_from_damaged_weights(
    real_checkpoint: Path, tmp_path: Path
) -> None:
    state = torch.load(real_checkpoint, weights_only=True)['state_dict']
    weights = next(value for value in state.values() if value.any()).numpy().tobytes()
    content = real_checkpoint.read_bytes()
    assert weights in content
    file = tmp_path / 'damaged.pth'
    file.write_bytes(content.replace(weights, bytes(len(weights)), 1))
    read_checkpoint(file)
    with pytest.raises(UsageError, match=r'damaged\.pth is damaged, as its checksums show'):
        check_resumable(file)


@pytest.mark.parametrize(
    'checkpoint',
    [
        {'layer.weight': torch.ones(1)},
        {'state_dict': {'layer.weight': torch.ones(1)}},
        {'state_dict': {}, 'meta': {'epoch': 1, 'iter': 2}},
        {'state_dict': {}, 'meta': {}, 'message_hub': {}},
        {'state_dict': {}, 'message_hub': {}},
        {'state_dict': {}, 'message_hub': {}, 'meta': None},
        {'state_dict': {}, 'message_hub': None, 'meta': {'epoch': 1, 'iter': 2}},
    ],
    ids=['bare', 'weights', 'no_message_hub', 'no_epoch', 'no_meta', 'none_meta', 'none_hub'],
)
def test_training_cannot_be_resumed_from_weights(checkpoint: dict, tmp_path: Path) -> None:
    file = tmp_path / 'weights.pth'
    torch.save(checkpoint, file)
    option = quote(f'load_from={file}')
    with pytest.raises(UsageError, match=f'--cfg-options {re.escape(option)}'):
        check_resumable(file)
