"""What lets torchvision be imported without its operators, installed in an environment of its own.

A stand-in for torchvision takes the steps of the real one: it loads its operators or not, and then
attaches shapes to two of them.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

SHAPES = """
import torch
for operator in ('nms', 'qnms'):
    torch.library.register_fake(f'torchvision::{operator}', lambda *arguments: None)
"""
LOADED = """
import torch
library = torch.library.Library('torchvision', 'DEF')
for operator in ('nms', 'qnms'):
    library.define(operator + '(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')
def _has_ops():
    return True
"""
MISSING = """
def _has_ops():
    return False
"""


@pytest.fixture(scope='module')
def environment(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment where the declaration is installed."""
    root = tmp_path_factory.mktemp('environment')
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', root], check=True)
    python = root / 'bin' / 'python'
    install = [python, '-I', repo / 'tools' / 'declare_torchvision_ops.py']
    subprocess.run(install, check=True)
    return python


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs code there, beside torch and a stand-in for torchvision."""

    def run(code: str, extension: str = MISSING) -> str:
        package = tmp_path / 'torchvision'
        package.mkdir()
        (package / '__init__.py').write_text('from . import extension, _meta_registrations')
        (package / 'extension.py').write_text(extension)
        (package / '_meta_registrations.py').write_text(SHAPES)
        env = {**os.environ, 'PYTHONPATH': f'{tmp_path}:{Path(torch.__file__).parents[1]}'}
        done = subprocess.run([environment, '-c', code], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_operators_that_did_not_load_are_declared(run):
    assert run('import torchvision, torch; print(torch.ops.torchvision.qnms.default._schema)') == (
        'torchvision::qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor'
    )


def test_operators_that_loaded_are_left_alone(run):
    code = 'import torchvision, declare_torchvision_ops as d; print(d.Watch.library)'

    assert run(code, LOADED) == 'None'


def test_starting_python_imports_nothing_more(run):
    code = "import sys; print('declare_torchvision_ops' in sys.modules, 'torch' in sys.modules)"

    assert run(code) == 'True False'


def test_without_it_the_stand_in_fails_as_torchvision_does(run):
    code = (
        'import sys, declare_torchvision_ops as d; sys.meta_path.remove(d.Watch)\n'
        'try: import torchvision\n'
        'except RuntimeError as error: print(error)'
    )

    assert run(code) == 'operator torchvision::nms does not exist'


def test_here_torchvision_and_mmpretrain_are_imported():
    pytest.importorskip('mmpretrain')
    import torchvision

    assert torchvision.extension._has_ops() or torch.ops.torchvision.nms
