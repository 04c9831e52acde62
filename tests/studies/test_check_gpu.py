"""The GPU check where there is no GPU: one sentence, and nothing written."""

import pytest
import torch


@pytest.mark.skipif(torch.cuda.is_available(), reason='here is a GPU')
def test_without_a_gpu_it_says_so(run_tool, tmp_path):
    done = run_tool('-m', 'studies.check_gpu', '--out', tmp_path / 'out', code=2)

    assert done.stderr == 'There is no CUDA GPU here: run this on a machine that has one.\n'
    assert not (tmp_path / 'out').exists()
