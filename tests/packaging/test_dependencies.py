"""Whatever the code imports is declared in pyproject.toml."""

import ast
import re
import sys
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

# used where it is installed, and no dependency
OPTIONAL = {'sn_openmmlab': {'triton', 'mmpretrain'}, 'tests': {'mmpretrain', 'mmdeploy'}}
# what each stack brings, by the name of its distribution in onedl and in openmmlab
TOOLBOXES = {
    'cv2': ('opencv-python', 'opencv-python'),
    'mmcv': ('onedl-mmcv', 'mmcv'),
    'mmdet': ('onedl-mmdetection', 'mmdet'),
    'mmengine': ('onedl-mmengine', 'mmengine'),
    'mmpretrain': ('onedl-mmpretrain', 'mmpretrain'),
    'mmseg': ('onedl-mmsegmentation', 'mmsegmentation'),
    'pycocotools': ('pycocotools', 'pycocotools'),
    'torchvision': ('torchvision', 'torchvision'),
}
# the extras that each folder may use besides a stack
EXTRAS = {
    'sn_openmmlab': [],
    'tools': [],
    'examples': ['demo', 'dev'],
    'studies': ['demo', 'dev'],
    'tests': ['demo', 'dev', 'docs'],
}


def _imported(folder: Path) -> set[str]:
    """Return the top-level names that the modules of ``folder`` import, at any depth."""
    names = set()
    for file in folder.rglob('*.py'):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module)
    return {name.split('.')[0] for name in names}


def _normalize(requirement: str) -> str:
    """Return the name in a requirement, spelled as the index spells it."""
    name = re.match(r'[\w.-]+', requirement)[0]
    return re.sub(r'[-_.]+', '-', name).lower()


def _undeclared(modules: Iterable[str], requirements: Iterable[str]) -> dict[str, list[str]]:
    """Return the modules that none of the requirements brings, with what would bring them."""
    declared = {_normalize(requirement) for requirement in requirements}
    installed = packages_distributions()
    # what is not installed is looked for under its own name
    brought = {module: installed.get(module, [module]) for module in modules}
    return {
        module: distributions
        for module, distributions in brought.items()
        if declared.isdisjoint(map(_normalize, distributions))
    }


@pytest.mark.parametrize('folder', EXTRAS)
def test_every_import_is_declared(folder, repo, project):
    # scripts import the modules beside them
    folders = [repo / part for part in ('docs', 'tests', 'tools')]
    beside = {file.stem for part in folders for file in part.glob('*.py')}
    ours = {'sn_openmmlab', 'examples', 'studies', 'tests', 'tools', *beside}
    modules = _imported(repo / folder) - set(sys.stdlib_module_names) - ours
    modules -= OPTIONAL.get(folder, set())
    requirements = [*project['dependencies']]
    for extra in EXTRAS[folder]:
        requirements += project['optional-dependencies'][extra]

    assert _undeclared(modules - set(TOOLBOXES), requirements) == {}


@pytest.mark.parametrize('stack', ['onedl', 'openmmlab'])
def test_each_stack_brings_the_toolboxes(stack, project):
    declared = {_normalize(pin) for pin in project['optional-dependencies'][stack]}

    assert {names[stack == 'openmmlab'] for names in TOOLBOXES.values()} <= declared


def test_an_undeclared_import_is_noticed(tmp_path):
    (tmp_path / 'module.py').write_text('def draw():\n    from rich.table import Table\n')

    assert _imported(tmp_path) == {'rich'}
    assert _undeclared({'rich', 'numpy'}, ['numpy==2.2.6', 'richer']) == {'rich': ['rich']}
