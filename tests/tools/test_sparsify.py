"""tools/sparsify.py makes checkpoints sparse and exports them, and other tools take the result."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope

from sn_openmmlab.runs.config import read_config
from tests.sparse_models import spread

# The toolbox alone: evaluates, reads the config that it dumped, and predicts on an image.
ALONE = """
import json, sys

class Blocked:
    def find_spec(self, name, *rest):
        if name.split('.')[0] == 'sn_openmmlab':
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
from mmdet.apis import inference_detector, init_detector
from mmengine.config import Config
from mmengine.runner import Runner

config, checkpoint, image, work_dir = sys.argv[1:]
read = Config.fromfile(config)
read.load_from, read.work_dir = checkpoint, work_dir
metrics = Runner.from_cfg(read).test()
read.dump(f'{work_dir}/again.py')
assert Config.fromfile(f'{work_dir}/again.py').model == read.model
found = inference_detector(init_detector(config, checkpoint, device='cpu'), image).pred_instances
assert not any(name.startswith('sn_openmmlab') for name in sys.modules)
print('RESULT' + json.dumps([metrics, found.scores.tolist(), found.bboxes.tolist()]))
"""


@pytest.fixture(scope='module')
def trained(detection_config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a checkpoint as mmengine does, with an average; return the file."""
    config = read_config(detection_config)
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = spread(MODELS.build(config.model))
    state = model.state_dict()
    average = {f'module.{name}': 0.5 * value for name, value in state.items()}
    file = tmp_path_factory.mktemp('trained') / 'epoch_1.pth'
    meta = dict(epoch=1, iter=4, dataset_meta=dict(classes=('bright', 'dark')))
    torch.save(
        dict(
            state_dict=state,
            ema_state_dict={**average, 'steps': torch.tensor(4)},
            optimizer=dict(state={}, param_groups=[]),
            message_hub={},
            meta=meta,
        ),
        file,
    )
    return file


@pytest.fixture(scope='module')
def written(
    repo: Path,
    detection_config: Path,
    trained: Path,
    run_together: Callable,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Path, list[str]]:
    """Return the sparse checkpoint, the exported one, and what the tool printed for each."""
    folder = tmp_path_factory.mktemp('sparse')
    command = (repo / 'tools/sparsify.py', detection_config, trained)
    files = folder / 'sparse.pth', folder / 'exported' / 'detector.pth'
    done = run_together([(*command, files[0]), (*command, files[1], '--export')])
    assert [run.returncode for run in done] == [0, 0], done
    return (*files, [run.stdout for run in done])


def test_the_choices_are_written_and_all_else_is_kept(trained: Path, written: tuple) -> None:
    before, after = (torch.load(file, weights_only=True) for file in (trained, written[0]))
    old, new = before['state_dict'], after['state_dict']
    for name in ('backbone.layer2.0.downsample.1', 'neck.fpn_convs.0.sn'):
        for kind in ('mean', 'var'):
            expected = old[f'{name}.{kind}_weight'].argmax().item()
            assert new[f'{name}.{kind}_choice'].tolist() == [expected]
            assert after['ema_state_dict'][f'module.{name}.{kind}_choice'].tolist() == [expected]
    assert new._metadata['neck.fpn_convs.0.sn']['scopes'] == ['in', 'ln', 'bn']
    kept = {name: value for name, value in new.items() if not name.endswith('_choice')}
    torch.testing.assert_close(kept, dict(old), rtol=0, atol=0)
    assert after['meta'].pop('sparsify')['source'] == 'epoch_1.pth'
    for key in ('meta', 'optimizer', 'message_hub'):
        assert after[key] == before[key]


def test_tables(written: tuple) -> None:
    sparse, exported = (
        {line.split()[0]: ' '.join(line.split()[1:]) for line in text.splitlines() if line.strip()}
        for text in written[2]
    )
    # The ratios of λ = (1, 3, 1) and λ′ alike.
    ratios = 'in 0.11, ln 0.79, bn 0.11'
    assert sparse['backbone.layer1.0.sn1'] == f'ln {ratios} ln {ratios}'
    assert exported['backbone.layer1.0.sn1'] == 'ln ln GroupNorm of 1 group'
    assert exported['backbone.layer1.0.sn2'] == 'bn bn folded into backbone.layer1.0.conv2'
    assert exported['backbone.sn1'] == 'in in InstanceNorm2d'


def test_the_toolbox_alone_gives_what_our_tool_gives_for_the_sparse_checkpoint(
    repo: Path,
    detection_config: Path,
    tiny_coco: Path,
    written: tuple,
    run_tool: Callable,
    tested: Callable,
    tmp_path: Path,
) -> None:
    sparse, exported, _ = written
    assert [file.name for file in sorted(exported.parent.iterdir())] == [
        'detector.pth',
        'detector.py',
        'exported_norms.py',
    ]
    ours = (repo / 'tools/test.py', detection_config, sparse, '--work-dir', tmp_path / 'ours')
    run_tool(*ours, '--out', tmp_path / 'ours.pkl')
    image = tiny_coco / 'images/val0.png'

    done = run_tool(
        *('-c', ALONE, exported.with_suffix('.py'), exported, image, tmp_path / 'theirs'),
        env={'PYTHONPATH': ''},
    )

    metrics, scores, _ = json.loads(done.stdout.rpartition('RESULT')[2])
    assert metrics == pytest.approx(tested(tmp_path / 'ours'), abs=0.02)
    with open(tmp_path / 'ours.pkl', 'rb') as stream:
        (first, *_) = np.load(stream, allow_pickle=True)
    found = first['pred_instances']['scores']
    np.testing.assert_allclose(scores, found, rtol=1e-3, atol=1e-4)


def test_faults_are_one_sentence(
    repo: Path,
    detection_config: Path,
    trained: Path,
    written: tuple,
    fail: Callable,
    tmp_path: Path,
) -> None:
    out = tmp_path / 'out.pth'
    assert 'is sparse already' in fail('sparsify.py', detection_config, written[0], out)
    assert 'would be overwritten' in fail('sparsify.py', detection_config, trained, trained)
    said = fail('sparsify.py', detection_config, trained, tmp_path / 'out.onnx', '--export')
    assert 'must name a .pth file' in said
    assert 'there is no checkpoint' in fail('sparsify.py', detection_config, tmp_path / 'a', out)
    other = repo / 'configs/demo/faster-rcnn_r18_fpn_bn-all_digits.py'
    assert 'holds SN where the model has' in fail('sparsify.py', other, trained, out)
    with DefaultScope.overwrite_default_scope('mmdet'):
        model = MODELS.build(Config.fromfile(other).model)
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'bn.pth')
    assert 'has no SN layer' in fail('sparsify.py', other, tmp_path / 'bn.pth', out)
    assert not out.exists()
