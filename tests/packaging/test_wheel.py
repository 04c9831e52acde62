"""What ``python -m build`` makes: complete, and usable in an environment without this clone."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import mmengine
import pytest
import yaml
from packaging.requirements import Requirement

import sn_openmmlab

TOOLS = [
    '_sleeping_threads.py',
    'convert_checkpoint.py',
    'plot_importance.py',
    'predict.py',
    'batch_average.py',
    'check_data.py',
    'report.py',
    'sparsify.py',
    'test.py',
    'train.py',
]


def _succeed(*command: object, **options: object) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@dataclass(frozen=True)
class Built:
    """The sources that were built, and the two archives."""

    sources: Path
    sdist: Path
    wheel: Path


@pytest.fixture(scope='session')
def built(repo: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the sdist of a copy of this clone, and from that the wheel without C++ kernels."""
    sources, out = tmp_path_factory.mktemp('sources'), tmp_path_factory.mktemp('dist')
    manifest = (repo / 'MANIFEST.in').read_text().splitlines()
    folders = [line.split()[1] for line in manifest if line.startswith('graft ')]
    for folder in ['sn_openmmlab', *folders]:
        ignored = shutil.ignore_patterns('__pycache__', '*.pyc', '*.so')
        shutil.copytree(repo / folder, sources / folder, ignore=ignored)
    for file in filter(Path.is_file, repo.iterdir()):
        shutil.copy(file, sources)
    command = (sys.executable, '-m', 'build', '--no-isolation', '--outdir', out)
    _succeed(*command, cwd=sources, env={**os.environ, 'SN_OPENMMLAB_WITH_CPP': '0'})
    (sdist,), (wheel,) = out.glob('*.tar.gz'), out.glob('*.whl')
    return Built(sources, sdist, wheel)


def test_the_sdist_holds_what_building_and_testing_need(built):
    with tarfile.open(built.sdist) as archive:
        members = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    files = {file.relative_to(built.sources) for file in built.sources.rglob('*') if file.is_file()}
    folders = {file for file in files if len(file.parts) > 1 and 'egg-info' not in file.parts[0]}

    assert folders <= members
    for name in ['LICENSE', 'README.md', 'Makefile', 'pyproject.toml', 'setup.py', 'MANIFEST.in']:
        assert Path(name) in members


@pytest.fixture(scope='session')
def wheel_files(built: Built) -> dict[str, str]:
    """Return the text files of the wheel by their names."""
    with ZipFile(built.wheel) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_the_wheel_holds_the_package_alone(wheel_files):
    info = f'sn_openmmlab-{sn_openmmlab.__version__}.dist-info'

    assert {name.split('/')[0] for name in wheel_files} == {'sn_openmmlab', info}
    assert 'sn_openmmlab/py.typed' in wheel_files
    assert f'{info}/licenses/LICENSE' in wheel_files


def test_without_the_kernels_the_wheel_is_for_every_platform(built):
    assert built.wheel.name.endswith('-py3-none-any.whl')


def _build_kernels(sources: Path, out: Path, **variables: str) -> subprocess.CompletedProcess:
    """Run the build of the C++ kernels alone."""
    command = [sys.executable, 'setup.py', 'build_ext', '--build-lib', out, '--build-temp', out]
    env = {**os.environ, **variables}
    return subprocess.run(command, cwd=sources, env=env, capture_output=True, text=True)


@pytest.mark.parametrize('compiler', ['no-such-compiler', 'false'])
def test_without_a_compiler_that_works_the_package_is_installed_without_kernels(
    compiler, built, tmp_path
):
    done = _build_kernels(built.sources, tmp_path, CXX=compiler)

    assert done.returncode == 0, done.stderr
    assert 'sn_openmmlab: installing without the C++ kernels: ' in done.stdout
    assert not list(tmp_path.rglob('*.so'))


@pytest.mark.parametrize('compiler', ['', ' '])
def test_an_empty_name_of_the_compiler_is_that_of_the_default(compiler, built, tmp_path):
    done = _build_kernels(built.sources, tmp_path, CXX=compiler, PATH=str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert 'there is no C++ compiler (c++).' in done.stdout


def test_with_a_broken_torch_the_package_is_installed_without_kernels(built, tmp_path):
    package = tmp_path / 'broken' / 'torch'
    package.mkdir(parents=True)
    (package / '__init__.py').write_text("raise OSError('libtorch.so: cannot open')")

    done = _build_kernels(built.sources, tmp_path, PYTHONPATH=str(package.parent))

    assert done.returncode == 0, done.stderr
    assert 'torch cannot be imported (libtorch.so: cannot open).' in done.stdout


def test_a_variable_that_means_nothing_is_refused(built, tmp_path):
    done = _build_kernels(built.sources, tmp_path, SN_OPENMMLAB_WITH_CPP='yes')

    assert done.returncode == 1
    assert "SN_OPENMMLAB_WITH_CPP is 'yes', but must be 1" in done.stderr


def test_kernels_that_are_asked_for_must_be_built(built, tmp_path):
    done = _build_kernels(
        built.sources, tmp_path, CXX='no-such-compiler', SN_OPENMMLAB_WITH_CPP='1'
    )

    expected = 'cannot compile the C++ kernels: there is no C++ compiler (no-such-compiler).'
    assert done.returncode == 1 and expected in done.stderr


def test_its_metadata_has_the_version_and_the_dependencies(wheel_files, project):
    (text,) = (text for name, text in wheel_files.items() if name.endswith('/METADATA'))
    metadata = Parser().parsestr(text)
    required = [Requirement(line) for line in metadata.get_all('Requires-Dist')]

    assert metadata['Version'] == sn_openmmlab.__version__
    assert {str(one) for one in required if not one.marker} == set(project['dependencies'])


def test_mim_finds_configs_tools_and_their_index(wheel_files, repo):
    mim = 'sn_openmmlab/.mim/'
    carried = {name.removeprefix(mim) for name in wheel_files if name.startswith(mim)}
    index = yaml.safe_load(wheel_files[f'{mim}model-index.yml'])
    configs = {
        str(file.relative_to(repo))
        for file in (repo / 'configs').rglob('*')
        if file.suffix in ('.py', '.yml', '.md')
    }

    assert carried == {'model-index.yml', *configs, *(f'tools/{name}' for name in TOOLS)}
    assert set(index['Import']) <= carried
    assert wheel_files[f'{mim}tools/train.py'] == (repo / 'tools/train.py').read_text()


def _link_with_dependencies(names: list[str], folder: Path) -> None:
    """Link distributions of this environment, and what they depend on, into ``folder``."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        for part in {file.parts[0] for file in found.files} - {'..', '__pycache__'}:
            if not (folder / part).exists():
                (folder / part).symlink_to(found.locate_file(part))
        requirements = map(Requirement, found.requires or [])
        waiting += [one.name for one in requirements if _is_met(one)]


def _is_met(requirement: Requirement) -> bool:
    """Tell whether a requirement holds here, without extras."""
    return not requirement.marker or requirement.marker.evaluate({'extra': ''})


@pytest.fixture(scope='session')
def bare_python(
    built: Built, repo: Path, project: dict, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., str]:
    """Return a function that runs Python in a bare environment with the installed wheel.

    Of this environment it sees the dependencies of the package; with ``toolbox=True`` all of it.
    """
    root = tmp_path_factory.mktemp('bare')
    _succeed(sys.executable, '-m', 'venv', '--without-pip', root / 'venv')
    python = root / 'venv/bin/python'
    site = _succeed(python, '-c', "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    pip = [sys.executable, '-m', 'pip', '--disable-pip-version-check', 'install', '--no-index']
    _succeed(*pip, '--no-deps', '--target', site, built.wheel)
    # What `make env` installs so that MMDetection can import MMPretrain, and that torchvision.
    _succeed(python, repo / 'tools' / 'declare_torchvision_ops.py')
    links = root / 'links'
    links.mkdir()
    _link_with_dependencies([Requirement(line).name for line in project['dependencies']], links)
    Path(site, 'links.pth').write_text(f'{links}\n')
    plain = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}

    def run(*args: object, toolbox: bool = False) -> str:
        seen = {'PYTHONPATH': f'{site}{os.pathsep}{Path(mmengine.__file__).parents[1]}'}
        env = {**plain, 'OMP_NUM_THREADS': '1', **(seen if toolbox else {})}
        return _succeed(python, '-W', 'ignore', *args, env=env, cwd=root, timeout=900)

    return run


def test_the_installed_wheel_works_without_any_toolbox(bare_python):
    code = """
import importlib, pkgutil, sys
from importlib.util import find_spec
import torch, sn_openmmlab
print([name for name in ('mmengine', 'mmcv', 'mmdet', 'mmseg', 'studies', 'tests')
       if find_spec(name)])
layer = sn_openmmlab.SwitchNorm(2, scopes=('in', 'ln'), eps=0)
print(layer(torch.tensor([[[-1.0, 1.0], [-1.0, 1.0]]])).flatten().tolist())
print(sn_openmmlab.__version__, sn_openmmlab.__file__)
"""
    toolboxes, output, version = bare_python('-c', code).splitlines()

    assert toolboxes == '[]'
    assert output == '[-1.0, 1.0, -1.0, 1.0]'
    assert version.startswith(sn_openmmlab.__version__)
    assert 'site-packages' in version


def test_beside_a_toolbox_an_installed_config_trains(bare_python, detection_config, repo, tmp_path):
    found = 'import sn_openmmlab as sn; print(sn.__path__[0] + "/.mim")'
    mim = bare_python('-c', found, toolbox=True).splitlines()[-1]
    assert 'site-packages' in mim
    text = detection_config.read_text()
    assert f'{repo}/configs/' in text
    config = tmp_path / 'tiny_detection.py'
    config.write_text(text.replace(f'{repo}/configs/', f'{mim}/configs/'))

    short = ['--cfg-options', 'train_dataloader.dataset.indices=2', 'train_cfg.val_interval=2']
    work_dir = tmp_path / 'work_dir'
    bare_python(f'{mim}/tools/train.py', config, '--work-dir', work_dir, *short, toolbox=True)

    assert (work_dir / 'epoch_1.pth').is_file()
