"""The backends of the op that run on a CPU, as parameters of tests."""

import pytest

from sn_openmmlab.kernels.cpp.library import why_missing

HAS_CPP = why_missing() is None
CPP = pytest.param('cpp', marks=pytest.mark.skipif(not HAS_CPP, reason=str(why_missing())))
FUSED_ON_CPU = ('aten', CPP)
ON_CPU = ('plain', *FUSED_ON_CPU)
# The same by name, without those that are not built here.
BUILT = ('plain', 'aten', 'cpp') if HAS_CPP else ('plain', 'aten')
