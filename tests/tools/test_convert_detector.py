"""tools/convert_checkpoint.py converts, shows and verifies the authors' trained detectors."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sn_openmmlab import __version__
from sn_openmmlab.checkpoints.plans.detector_releases import DETECTORS
from sn_openmmlab.checkpoints.plans.layout import Layout

pytest.importorskip('mmdet')
TITLE = "the authors' Faster R-CNN with FPN and SN of in, ln, bn"
CONTROL = 'backbone.layer1.2.sn3.var_weight'


@pytest.fixture(scope='module')
def source(outlined_file: Callable[[str], Path]) -> Path:
    """Return the file of the Faster R-CNN of (8,2)."""
    return outlined_file('faster_rcnn_r50_fpn_sn')


def test_detector_is_converted_and_verified(
    source: Path, convert: Callable, tmp_path: Path
) -> None:
    output = tmp_path / 'new/detector.pth'
    assert convert(source, output) == (
        0,
        f'{source}: {TITLE}.\n'
        'In its first stage, bn is folded into in: --first-stage keep would leave it.\n'
        f'Wrote 441 weights to {output}.\n',
        '',
    )
    checkpoint = torch.load(output, weights_only=True)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert checkpoint['meta'] == {
        'sources': [{'file': source.name, 'sha256': digest}],
        'layout': 'faster-rcnn-fpn-8x2',
        'converter': f'sn_openmmlab {__version__}',
        'scopes': ['in', 'ln', 'bn'],
        'data_preprocessor': {
            'mean': [123.675, 116.28, 103.53],
            'std': [58.395, 57.12, 57.375],
            'bgr_to_rgb': True,
        },
        'first_stage': 'bn folded into in',
    }
    fits = f'{output} fits {TITLE}: no key is missing, none is unexpected.\n'
    code, out, _ = convert('--verify', output)
    # MMDetection may say something before that, when it is first imported.
    assert (code, out.endswith(fits)) == (0, True)

    del checkpoint['state_dict']['roi_head.bbox_head.fc_cls.bias']
    torch.save(checkpoint, output)
    code, _, error = convert('--verify', output)
    assert code == 2
    assert f'does not fit {TITLE}: missing roi_head.bbox_head.fc_cls.bias; unexpect' in error


def test_first_stage_is_kept_on_request(source: Path, convert: Callable, tmp_path: Path) -> None:
    output = tmp_path / 'detector.pth'
    code, out, _ = convert('--first-stage', 'keep', source, output)
    assert (code, 'folded' in out) == (0, False)
    checkpoint = torch.load(output, weights_only=True)
    assert checkpoint['meta']['first_stage'] == 'as released'
    theirs = torch.load(source, weights_only=True)['model']
    control = theirs['Conv_Body.conv_body.res2.2.sn3.var_weight']
    assert torch.equal(checkpoint['state_dict'][CONTROL], control)


def test_dry_run_shows_every_weight(source: Path, convert: Callable, tmp_path: Path) -> None:
    code, out, error = convert('--dry-run', source, tmp_path / 'out.pth')
    rows = [[cell.strip() for cell in line.strip('│\n').split('│')] for line in out.splitlines()]
    assert (code, error) == (0, '')
    theirs = 'Conv_Body.conv_body.res2.2.sn3.var_weight'
    assert [theirs, f'{CONTROL} (bn folded into in)', '(3,)'] in rows
    assert ['Box_Outs.bbox_pred.bias', 'roi_head.bbox_head.fc_reg.bias', '(320,)'] in rows
    assert out.endswith(
        '441 weights fit; 0 dropped, 0 of another shape, 0 left over in the file, '
        '0 left over in the model.\n'
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ('options', 'file', 'message'),
    [
        (
            ('--first-stage', 'fold'),
            'resnet50_sn_8x1',
            'it is no trained detector of the authors: leave out --first-stage.',
        ),
        (
            ('--first-stage', 'fold'),
            'mask_rcnn_r50_fpn_sn_8x1',
            'its SN has no bn to fold into in: leave out --first-stage.',
        ),
        (('--keep-classifier',), 'faster_rcnn_r50_fpn_sn', 'it has no classifier to keep: it is '),
        (('--batch-ratio', '0.9'), 'faster_rcnn_r50_fpn_sn', 'it has no BatchNorm to give a'),
    ],
)
def test_options_of_other_files_are_refused(
    options: tuple[str, ...],
    file: str,
    message: str,
    outlined_file: Callable[[str], Path],
    convert: Callable,
    tmp_path: Path,
) -> None:
    source = outlined_file(file)
    code, _, error = convert(*options, source, tmp_path / 'out.pth')
    assert code == 2
    assert error.startswith(f'error: {source}: {message}')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('layout', DETECTORS, ids=lambda layout: layout.name)
@pytest.mark.parametrize('options', [(), ('--dry-run',), ('--first-stage', 'keep')])
def test_converted_file_is_not_converted_again(
    layout: Layout, options: tuple[str, ...], convert: Callable, tmp_path: Path
) -> None:
    meta = dict(converter='sn_openmmlab', layout=layout.name)
    source = tmp_path / 'converted.pth'
    weights = {'backbone.layer1.0.sn1.mean_weight': torch.ones(3)}
    torch.save(dict(state_dict=weights, meta=meta), source)
    code, _, error = convert(*options, source, tmp_path / 'out.pth')
    assert code == 2
    assert error == (
        f'error: {source}: it was already converted from {layout.model}: use it as it is.\n'
    )
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(
    ('args', 'message'),
    [
        (['--first-stage', 'keep', *'abc'], '--first-stage is for one file with a detector'),
        (['--verify', 'a', '--first-stage', 'keep'], '--verify takes one file and nothing else.'),
    ],
)
def test_wrong_arguments_are_explained(args: list[str], message: str, convert: Callable) -> None:
    code, _, error = convert(*args)
    assert code == 2
    assert message in error
