"""The moments of a batch alone, by each backend, against torch's."""

import pytest
import torch

from sn_openmmlab.ops.backends import use_backend
from sn_openmmlab.ops.batch_moments import batch_moments
from tests.backends import ON_CPU


@pytest.mark.parametrize('backend', ON_CPU)
@pytest.mark.parametrize('dtype', [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize('shape', [(5, 3), (1, 3), (4, 3, 5), (2, 3, 4, 5)], ids=str)
def test_they_are_torchs_mean_and_biased_variance(shape, dtype, backend):
    torch.manual_seed(0)
    x = (torch.randn(shape) * 3 + 100).to(dtype)
    dims = [dim for dim in range(x.dim()) if dim != 1]
    var, mean = torch.var_mean(x.double(), dims, correction=0)
    with use_backend(backend):
        found = batch_moments(x)
    kept = torch.float64 if dtype == torch.float64 else torch.float32
    assert [table.dtype for table in found] == [kept, kept]
    torch.testing.assert_close(found, (mean.to(kept), var.to(kept)), rtol=1e-5, atol=1e-5)
