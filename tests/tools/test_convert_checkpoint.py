"""tools/convert_checkpoint.py converts, shows and verifies, and reports faults in one sentence."""

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
import torch

from sn_openmmlab import __version__


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A small file that is read and then refused."""
    file = tmp_path / 'small.pth'
    torch.save({'conv1.weight': torch.ones(1)}, file)
    return file


def test_backbone_is_converted_and_verified(
    repo: Path,
    outlined_file: Callable[[str], Path],
    run_tool: Callable,
    convert: Callable,
    tmp_path: Path,
) -> None:
    """The conversion runs as a process of its own, as a user starts it."""
    source, output = outlined_file('resnet50_sn_detectron_c4'), tmp_path / 'new/c4.pth'
    before = source.read_bytes()
    done = run_tool(repo / 'tools/convert_checkpoint.py', source, output)
    assert done.stdout == (
        f"{source}: a ResNet-50 v1 with SN of in, ln, bn, in the layout of the authors' detection "
        'release for C4.\n'
        'Dropped Conv_Body.classifier.weight, Conv_Body.classifier.bias, which a backbone does not '
        'have.\n'
        f'Wrote 371 weights to {output}.\n'
    )
    assert done.stderr == ''
    assert source.read_bytes() == before
    assert [file.name for file in output.parent.iterdir()] == ['c4.pth']
    checkpoint = torch.load(output, weights_only=True)
    assert checkpoint['meta'] == {
        'sources': [{'file': source.name, 'sha256': hashlib.sha256(before).hexdigest()}],
        'layout': 'detection-c4',
        'converter': f'sn_openmmlab {__version__}',
        'scopes': ['in', 'ln', 'bn'],
    }
    fits = 'fits a ResNet-50 with SN of in, ln, bn: no key is missing, none is unexpected.'
    assert convert('--verify', output) == (0, f'{output} {fits}\n', '')


def test_one_file_serves_backbone_and_c4_head(
    outlined_file: Callable[[str], Path], convert: Callable, tmp_path: Path
) -> None:
    """The C4 configs have three stages in the backbone, and the fourth in the head."""
    models = pytest.importorskip('mmdet.registry').MODELS
    assert convert(outlined_file('resnet50_sn_detectron_c4'), tmp_path / 'out.pth')[0] == 0
    theirs = torch.load(outlined_file('resnet50_sn_detectron_c4'), weights_only=True)['model']
    part = dict(
        depth=50,
        norm_cfg=dict(type='SN'),
        init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'out.pth')),
    )
    stages = dict(num_stages=3, strides=(1, 2, 2), dilations=(1, 1, 1), out_indices=(2,))
    backbone = models.build(dict(type='mmdet.ResNet', **stages, **part))
    head = models.build(dict(type='mmdet.ResLayer', stage=3, **part))
    filled = 0
    for module in (backbone, head):
        module.init_weights()
        for name, weight in module.state_dict().items():
            stage, _, rest = name.partition('.')
            number = int(stage[-1]) + 1 if stage.startswith('layer') else 1
            key = f'Conv_Body.res{number}.{rest if number > 1 else name}'
            if not name.endswith('num_batches_tracked'):
                assert torch.equal(weight.flatten(), theirs[key].flatten()), name
                filled += 1
    assert filled == 371


def test_segmenter_is_converted_and_verified(
    outlined_file: Callable[[str], Path], convert: Callable, tmp_path: Path
) -> None:
    pytest.importorskip('mmseg')
    output = tmp_path / 'ade20k.pth'
    pair = [outlined_file('ade20k_encoder'), outlined_file('ade20k_decoder')]
    code, out, _ = convert(*pair, output)
    assert code == 0
    assert f"{pair[1]}: the decoder of the authors' ADE20K segmenter, with deep" in out
    assert f'Wrote 389 weights to {output}.' in out
    code, out, _ = convert('--verify', output)
    assert code == 0
    assert out == (
        f'{output} fits the DeepLab of the paper: no key is missing, none is unexpected.\n'
    )
    code, _, error = convert(*reversed(pair), output)
    assert code == 2
    assert error.endswith('give ENCODER DECODER OUT.\n')
    torch.save({'x': Touch(tmp_path / 'ran')}, tmp_path / 'code')
    code, _, error = convert(pair[0], tmp_path / 'code', output)
    assert code == 2
    assert 'could run code' in error
    assert not (tmp_path / 'ran').exists()


@pytest.mark.parametrize('option', [(), ('--dry-run',)])
def test_reader_of_the_output_may_leave(
    option: tuple[str, ...],
    repo: Path,
    tool_env: dict[str, str],
    tmp_path: Path,
) -> None:
    source = tmp_path / 'bn.pth'
    torch.save(torch.nn.Sequential(torch.nn.BatchNorm2d(4)).state_dict(), source)
    read, write = os.pipe()
    os.close(read)
    tool = [sys.executable, repo / 'tools/convert_checkpoint.py', *option]
    arguments = [*tool, source, tmp_path / 'out.pth']
    done = subprocess.run(arguments, env=tool_env, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE
    assert done.stderr == b''
    assert {file.name for file in tmp_path.iterdir()} <= {'bn.pth', 'out.pth'}


def test_classifier_is_kept(
    outlined_file: Callable[[str], Path], convert: Callable, tmp_path: Path
) -> None:
    code, out, _ = convert('--keep-classifier', outlined_file('resnet50_sn'), tmp_path / 'out.pth')
    assert code == 0
    assert 'Wrote 373 weights' in out
    state = torch.load(tmp_path / 'out.pth', weights_only=True)['state_dict']
    assert state['head.fc.weight'].shape == (1000, 2048)
    assert state['backbone.layer4.2.sn3.running_var'].shape == (2048,)


def test_dry_run_shows_everything_and_writes_nothing(
    outlined: Callable[[str], dict], convert: Callable, tmp_path: Path
) -> None:
    checkpoint = outlined('resnet50_sn')
    state = checkpoint['state_dict']
    file = tmp_path / 'in.pth'
    torch.save(checkpoint, file)
    code, out, error = convert('--dry-run', file, tmp_path / 'out.pth')
    rows = [[cell.strip() for cell in line.strip('│\n').split('│')] for line in out.splitlines()]
    assert (code, error) == (0, '')
    assert ['module.sn1.running_mean', 'sn1.running_mean', '(64,)'] in rows
    assert ['module.fc.weight', 'dropped: no part of the model', '(1000, 2048)'] in rows
    assert out.endswith(
        '371 weights fit; 2 dropped, 0 of another shape, 0 left over in the file, '
        '0 left over in the model.\n'
    )
    assert set(state) == {row[0] for row in rows if row[0] in state}

    del state['module.layer4.2.sn3.bias']
    state['module.conv1.weight'] = torch.ones(64, 1, 7, 7)
    state['module.[red]more'] = torch.ones(5)
    torch.save(checkpoint, file)
    code, out, error = convert('--dry-run', file, tmp_path / 'out.pth')
    rows = [[cell.strip() for cell in line.strip('│\n').split('│')] for line in out.splitlines()]
    assert code == 2
    assert 'lacks layer4.2.sn3.bias' in error
    assert '369 weights fit; 2 dropped, 1 of another shape, 1 left over in the file, 1 left' in out
    assert ['left over: missing', 'layer4.2.sn3.bias', '(2048,)'] in rows
    assert ['module.[red]more', 'left over: unknown', '(5,)'] in rows
    misfit = 'does not fit: (64, 3, 7, 7) in this layout'
    assert ['module.conv1.weight', misfit, '(64, 1, 7, 7)'] in rows
    assert [path.name for path in tmp_path.iterdir()] == ['in.pth']


class Touch:
    """Pickles as a call that makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f'touch {quote(str(self.file))}',)


def bad_files(folder: Path, good: bytes) -> dict[str, str]:
    """Write files that cannot be converted, and return name → message."""
    torch.save(
        {'state_dict': {'conv1.weight': torch.ones(1)}, 'x': Touch(folder / 'ran')}, folder / 'code'
    )
    torch.save([torch.ones(1)], folder / 'list')
    torch.save({'conv1.weight': 'none'}, folder / 'text')
    (folder / 'empty').write_bytes(b'')
    (folder / 'cut').write_bytes(good[: len(good) // 2])
    (folder / 'html').write_text('<html>Quota exceeded</html>')
    (folder / 'folder').mkdir()
    return {
        'code': 'system, which is neither a tensor nor something that MMEngine saves, and could '
        'run code.',
        'list': 'holds no weights by name, but a list.',
        'text': 'it holds no tensor by name.',
        'empty': 'is not a checkpoint, or is damaged or cut short.',
        'cut': 'is not a checkpoint, or is damaged or cut short.',
        'html': 'is not a checkpoint, or is damaged or cut short.',
        'folder': f'{folder / "folder"} is a folder: name a checkpoint file in it.',
        'absent': f'there is no checkpoint file {folder / "absent"}.',
    }


@pytest.mark.parametrize('where', ['only', 'encoder', 'verify'])
def test_bad_files_are_one_sentence(
    where: str, small: Path, convert: Callable, tmp_path: Path
) -> None:
    folder, output = tmp_path / 'bad', tmp_path / 'out.pth'
    folder.mkdir()
    output.write_bytes(b'old')
    for name, message in bad_files(folder, small.read_bytes()).items():
        file = folder / name
        args = {
            'only': (file, output),
            'encoder': (file, small, output),
            'verify': ('--verify', file),
        }[where]
        code, out, error = convert(*args)
        assert code == 2, name
        assert error.startswith('error: '), name
        assert message in error
        assert error.count('\n') == 1
        assert out == ''
    assert output.read_bytes() == b'old'
    assert {path.name for path in tmp_path.iterdir()} == {'bad', 'small.pth', 'out.pth'}
    assert not (folder / 'ran').exists()
    torch.load(folder / 'code', weights_only=False)
    assert (folder / 'ran').exists(), 'the file would run no code even if it were trusted'


def test_bad_outputs_are_one_sentence(small: Path, convert: Callable, tmp_path: Path) -> None:
    before = small.read_bytes()
    os.symlink(small, tmp_path / 'link.pth')
    for output, message in (
        (small, 'is read and would be overwritten: name another file to write.'),
        (tmp_path / 'link.pth', 'is read and would be overwritten: name another file to write.'),
        (tmp_path, 'is a folder: name the file to write in it.'),
        (f'{tmp_path}/new/', 'is a folder: name the file to write in it.'),
        ('/dev/full', 'is not a regular file: name another file to write.'),
    ):
        assert convert(small, output) == (2, '', f'error: {output} {message}\n')
    assert small.read_bytes() == before


def test_output_that_cannot_be_written(
    outlined_file: Callable[[str], Path], small: Path, convert: Callable, tmp_path: Path
) -> None:
    source = outlined_file('resnet50_sn_8x1')
    code, _, error = convert(source, small / 'out.pth')
    assert code == 2
    assert f'error: {small / "out.pth"} was not written: ' in error
    assert [path.name for path in tmp_path.iterdir()] == ['small.pth']


@pytest.mark.parametrize(
    ('name', 'code'), [('SIGHUP', 129), ('SIGINT', 130), ('SIGTERM', 143)], ids=str
)
def test_ended_tool_leaves_what_was(
    name: str,
    code: int,
    outlined_file: Callable[[str], Path],
    convert: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal comes while the file is written, and again during the clean-up."""
    source, number, unlink = outlined_file('resnet50_sn_8x1'), getattr(signal, name), os.unlink

    def unlink_late(path: str) -> None:
        signal.raise_signal(number)
        unlink(path)

    monkeypatch.setattr(os, 'fsync', lambda _: signal.raise_signal(number))
    monkeypatch.setattr(os, 'unlink', unlink_late)
    (tmp_path / 'out.pth').write_bytes(b'old')
    for output in ('out.pth', 'new/out.pth'):
        # Otherwise the signal could end the tests, or be ignored.
        signal.signal(number, lambda *_: pytest.fail('the signal was not handled'))
        ended, _, error = convert(source, tmp_path / output)
        assert (ended, error) == (code, '')
    assert [path.name for path in tmp_path.rglob('*') if path.is_file()] == ['out.pth']
    assert (tmp_path / 'out.pth').read_bytes() == b'old'


def test_ignored_signal_stays_ignored(
    outlined_file: Callable[[str], Path],
    convert: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This is what nohup does."""
    monkeypatch.setattr(os, 'fsync', lambda _: signal.raise_signal(signal.SIGHUP))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert convert(outlined_file('resnet50_sn_8x1'), tmp_path / 'out.pth')[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ['out.pth']


@pytest.mark.skipif(sys.platform != 'linux', reason='needs file names of any bytes')
def test_names_that_are_not_text_are_printed_escaped(
    outlined_file: Callable[[str], Path], convert: Callable, tmp_path: Path
) -> None:
    source, output = (os.fsdecode(os.fsencode(tmp_path) + name) for name in (b'/\xe9', b'/\xff'))
    os.symlink(outlined_file('resnet50_sn_8x1'), source)
    code, out, _ = convert(source, output)
    assert code == 0
    assert out.startswith(f'{tmp_path}/\\udce9: ')
    assert out.endswith(f' weights to {tmp_path}/\\udcff.\n')
    assert len(torch.load(output, weights_only=True)['state_dict']) == 265
    said = f'error: {tmp_path}/\\udcff is read and would be overwritten'
    assert convert(output, output)[2].startswith(said)


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        ([], 'give IN OUT or ENCODER DECODER OUT: two or three files, not 0.'),
        (['in.pth'], 'give IN OUT or ENCODER DECODER OUT: two or three files, not 1.'),
        (list('abcd'), 'give IN OUT or ENCODER DECODER OUT: two or three files, not 4.'),
        (['--keep-classifier', *'abc'], '--keep-classifier is for one file'),
        (['--verify', 'a', 'b'], '--verify takes one file and nothing else.'),
        (['--verify', 'a', '--dry-run'], '--verify takes one file and nothing else.'),
    ],
)
def test_wrong_arguments_are_explained(args: list[str], message: str, convert: Callable) -> None:
    code, _, error = convert(*args)
    assert code == 2
    assert message in error
