"""``python -m sn_openmmlab`` says which backends can run."""

import shutil

import pytest
import torch

import sn_openmmlab
from sn_openmmlab import __main__ as main
from sn_openmmlab.ops import backends
from sn_openmmlab.ops.environment import BACKENDS


def test_it_prints_the_versions_and_every_backend(run_tool):
    first, *lines = run_tool('-m', 'sn_openmmlab').stdout.splitlines()

    assert first == f'sn_openmmlab {sn_openmmlab.__version__}, torch {torch.__version__}'
    states = dict(line.split(maxsplit=1) for line in lines[: len(BACKENDS)])
    assert tuple(states) == BACKENDS
    assert all(state.startswith(('available', 'not available: ')) for state in states.values())


@pytest.mark.skipif(shutil.which('c++') is None, reason='there is no C++ compiler')
def test_the_projects_own_environment_has_the_compiled_kernels():
    # The tests of the kernels are skipped without them.
    assert backends.availability()['cpp'] is None


def test_it_says_why_a_backend_is_not_available(monkeypatch, capsys):
    monkeypatch.setattr(backends, 'why_missing', lambda: 'it was not built')
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(backends, '_triton_version', lambda: (3, 5))

    main.main()

    lines = capsys.readouterr().out.splitlines()[1 : 1 + len(BACKENDS)]
    assert dict(line.split(maxsplit=1) for line in lines) == {
        'plain': 'available',
        'aten': 'available',
        'cpp': 'not available: it was not built',
        'triton': 'not available: it needs Triton 3.6 or newer',
    }


def test_it_prints_what_the_environment_says(set_environment, capsys):
    main.main()
    unset = capsys.readouterr().out
    assert 'SN_OPENMMLAB_BACKEND    not set: ' in unset
    assert 'SN_OPENMMLAB_GPU_CHECK  not set: ' in unset

    set_environment('-triton', '0')
    main.main()
    assert capsys.readouterr().out.splitlines()[-2:] == [
        'SN_OPENMMLAB_BACKEND    -triton',
        'SN_OPENMMLAB_GPU_CHECK  0',
    ]


def test_a_value_that_means_nothing_is_one_sentence(run_tool):
    done = run_tool('-m', 'sn_openmmlab', env={'SN_OPENMMLAB_BACKEND': 'cuda'}, code=2)

    assert done.stderr.startswith("error: SN_OPENMMLAB_BACKEND is 'cuda', but must be ")
    assert done.stderr.count('\n') == 1 and done.stdout == ''


def test_it_checks_every_gpu_in_every_type(monkeypatch, capsys):
    monkeypatch.setattr(main, 'availability', lambda: dict.fromkeys(BACKENDS))
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: 2)
    monkeypatch.setattr(torch.cuda, 'get_device_name', lambda device: f'GPU {device.index}')
    monkeypatch.setattr(torch.cuda, 'get_device_capability', lambda device: (9, device.index))
    wrong = (torch.device('cuda', 1), torch.bfloat16)
    monkeypatch.setattr(main, 'examine', lambda *place: 'it burns' if place == wrong else None)

    main.main()

    assert capsys.readouterr().out.splitlines()[-6:] == [
        'cuda:0 (GPU 0, compute capability 9.0), float32: the Triton kernels agree with torch',
        'cuda:0 (GPU 0, compute capability 9.0), float16: the Triton kernels agree with torch',
        'cuda:0 (GPU 0, compute capability 9.0), bfloat16: the Triton kernels agree with torch',
        'cuda:1 (GPU 1, compute capability 9.1), float32: the Triton kernels agree with torch',
        'cuda:1 (GPU 1, compute capability 9.1), float16: the Triton kernels agree with torch',
        'cuda:1 (GPU 1, compute capability 9.1), bfloat16: failed: it burns',
    ]
