"""The GPU check without a GPU: one sentence, nothing written, and no need for the toolboxes."""

import pytest
import torch

ABSENT = ('cv2', 'matplotlib', 'mmcv', 'mmdet', 'mmengine', 'mmseg', 'numpy')
CODE = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({ABSENT}))
runpy.run_module('studies.check_gpu', run_name='__main__')
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason='this machine has a GPU')
def test_without_a_gpu_it_says_so(run_tool, tmp_path):
    done = run_tool('-c', CODE, '--out', tmp_path / 'out', code=2)

    error = 'error: this machine has no CUDA GPU: run the check on one that has.'
    assert done.stderr.splitlines()[-1] == error
    assert not (tmp_path / 'out').exists()
