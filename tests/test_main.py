"""``python -m sn_openmmlab`` says which backends can run."""

import shutil

import pytest
import torch

import sn_openmmlab
from sn_openmmlab import __main__ as main
from sn_openmmlab.ops import backends


def test_it_prints_the_versions_and_every_backend(run_tool):
    first, *lines = run_tool('-m', 'sn_openmmlab').stdout.splitlines()

    assert first == f'sn_openmmlab {sn_openmmlab.__version__}, torch {torch.__version__}'
    assert [line.split()[0] for line in lines] == list(backends.BACKENDS)
    assert all(line.split(maxsplit=1)[1].startswith(('available', 'not a')) for line in lines)


@pytest.mark.skipif(shutil.which('c++') is None, reason='there is no C++ compiler')
def test_the_projects_own_environment_has_the_compiled_kernels():
    # The tests of the kernels are skipped without them.
    assert backends.availability()['cpp'] is None


def test_it_says_why_a_backend_is_not_available(monkeypatch, capsys):
    monkeypatch.setattr(backends, 'why_missing', lambda: 'it was not built')
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(backends, '_triton_version', lambda: (3, 5))

    main.main()

    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:])
    assert lines == {
        'plain': 'available',
        'aten': 'available',
        'cpp': 'not available: it was not built',
        'triton': 'not available: it needs Triton 3.6 or newer',
    }
