"""Add to the wheel what mim looks for in ``sn_openmmlab/.mim``: configs, tools and their index.

All else about the package is in pyproject.toml.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MIM = 'sn_openmmlab/.mim'
CONFIG_FILES = ('*.py', '*.yml', '*.md')
TOOLS = (
    'train.py',
    'test.py',
    'report.py',
    'predict.py',
    'plot_importance.py',
    'batch_average.py',
    'convert_checkpoint.py',
    'sparsify.py',
    '_sleeping_threads.py',
)


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


setup(cmdclass={'build_py': BuildWithMim})
