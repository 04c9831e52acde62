"""Compile the C++ kernels where that is possible, and add to the wheel what mim looks for.

All else about the package is in pyproject.toml.
"""

import importlib
import importlib.util
import os
import runpy
import shutil
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

MIM = 'sn_openmmlab/.mim'
CONFIG_FILES = ('*.py', '*.yml', '*.md')
TOOLS = (
    'train.py',
    'test.py',
    'check_data.py',
    'report.py',
    'predict.py',
    'plot_importance.py',
    'batch_average.py',
    'convert_checkpoint.py',
    'sparsify.py',
    '_sleeping_threads.py',
)
KERNELS = Path('sn_openmmlab/kernels/cpp')
# 0: leave the kernels out; 1: fail without them; unset: compile them if that works.
WITH_CPP = os.environ.get('SN_OPENMMLAB_WITH_CPP', '').strip()


def mim_files() -> list[Path]:
    """Return the files that go below ``.mim``, relative to the root of the project."""
    configs = [file for kind in CONFIG_FILES for file in Path('configs').rglob(kind)]
    return [Path('model-index.yml'), *sorted(configs), *(Path('tools', name) for name in TOOLS)]


class BuildWithMim(build_py):
    """Build the package, then copy the files of mim; an editable install copies nothing."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for file in mim_files():
            target = Path(self.build_lib, MIM, file)
            self.mkpath(str(target.parent))
            self.copy_file(str(file), str(target))


def obstacle() -> str | None:
    """Return why the kernels are not compiled, or None."""
    if WITH_CPP == '0':
        return 'SN_OPENMMLAB_WITH_CPP is 0'
    if importlib.util.find_spec('torch') is None:
        return 'torch is not here; with it installed, install with --no-build-isolation'
    if not os.environ.get('CXX', '').strip():
        os.environ.pop('CXX', None)  # Torch would take an empty name literally.
    compiler = os.environ.get('CXX', 'c++').split()[0]
    if shutil.which(compiler) is None:
        return f'there is no C++ compiler ({compiler})'
    try:
        importlib.import_module('torch.utils.cpp_extension')
    except Exception as error:
        return f'torch cannot be imported ({error})'
    return None


def kernels() -> dict[str, Any]:
    """Return what `setup` needs to compile the kernels; nothing where it is not possible."""
    if WITH_CPP not in ('', '0', '1'):
        raise SystemExit(
            f'sn_openmmlab: SN_OPENMMLAB_WITH_CPP is {WITH_CPP!r}, but must be 1, to fail without '
            'the C++ kernels, or 0, to leave them out.'
        )
    why_not = obstacle()
    if why_not is not None:
        if WITH_CPP == '1':
            raise SystemExit(f'sn_openmmlab: cannot compile the C++ kernels: {why_not}.')
        print(f'sn_openmmlab: installing without the C++ kernels: {why_not}.')
        return {}
    import torch
    from torch.utils.cpp_extension import BuildExtension, CppExtension

    class BuildKernels(BuildExtension):
        """Compile the kernels; where that fails, go on without them."""

        def run(self) -> None:
            try:
                super().run()
            except Exception as error:
                if WITH_CPP == '1':
                    raise
                self.extensions.clear()
                print(f'sn_openmmlab: installing without the C++ kernels: {error}')
            else:
                print(f'sn_openmmlab: compiled the C++ kernels for torch {torch.__version__}')

    name = runpy.run_path(str(KERNELS / 'library.py'))['library_name'](torch.__version__)
    extension = CppExtension(
        '.'.join([*KERNELS.parts, name]),
        [str(file) for file in sorted(KERNELS.glob('csrc/*.cpp'))],
        depends=[str(file) for file in sorted(KERNELS.glob('csrc/*'))],
        # A square root that may set errno is not vectorized.
        extra_compile_args=['-O3', '-fno-math-errno', '-fopenmp', '-Wno-psabi'],
        extra_link_args=['-fopenmp'],
    )
    build = BuildKernels.with_options(no_python_abi_suffix=True)
    return {'ext_modules': [extension], 'cmdclass': {'build_ext': build}}


compiled = kernels()
compiled.setdefault('cmdclass', {})['build_py'] = BuildWithMim
setup(**compiled)
