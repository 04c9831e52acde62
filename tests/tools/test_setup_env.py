"""The set-up script, with a stub in place of the environment's Python: no pip, no network."""

import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / 'tools' / 'setup_env.py'

# Stands for <venv>/bin/python: notes its arguments in calls.jsonl and gives the first answer of
# answers.json whose 'to' occurs in them; without one it succeeds in silence.
STUB = """#!{python}
import json, subprocess, sys, time
from pathlib import Path

project = Path(__file__).parents[2]
arguments = sys.argv[1:]
if 'tomllib' in arguments[-1]:
    sys.exit(subprocess.run([{python!r}, *arguments]).returncode)
with open(project / 'calls.jsonl', 'a') as file:
    print(json.dumps(arguments), file=file)
answers = json.loads((project / 'answers.json').read_text())
for answer in answers:
    if answer['to'] in ' '.join(arguments):
        print(answer['output'], flush=True)
        time.sleep(answer.get('sleep', 0))
        if answer.get('once'):
            answers.remove(answer)
            (project / 'answers.json').write_text(json.dumps(answers))
        sys.exit(answer.get('code', 0))
"""

SDIST = '  Downloading onedl_mmcv-2.3.6.tar.gz (515 kB)'
BUILDING = '  Building wheel for onedl-mmcv (pyproject.toml): started'
CACHED = '  Using cached onedl_mmcv-2.3.6-cp311-cp311-linux_x86_64.whl'
NO_NETWORK = (
    "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError('...: "
    "[Errno 101] Network is unreachable')': /simple/torch/"
)
BAD_MMCV = (
    'ImportError: .venv/lib/python3.11/site-packages/mmcv/_ext.cpython-311-x86_64-linux-gnu.so: '
    'undefined symbol: _ZN3c106detail14torchCheckFailE'
)


@pytest.fixture(scope='module')
def setup_env():
    spec = importlib.util.spec_from_file_location('setup_env', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules['setup_env'] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules['setup_env']


class Project:
    """A checkout with the real script and pyproject.toml, and stubs in both environments."""

    def __init__(self, folder):
        self.folder = folder
        (folder / 'tools').mkdir()
        shutil.copy(SCRIPT, folder / 'tools')
        shutil.copy(ROOT / 'pyproject.toml', folder)
        for venv in ('.venv', '.venv-openmmlab'):
            python = folder / venv / 'bin' / 'python'
            python.parent.mkdir(parents=True)
            python.write_text(STUB.format(python=sys.executable))
            python.chmod(0o755)
        self.answer()

    def answer(self, *answers):
        (self.folder / 'answers.json').write_text(json.dumps(answers))

    def run(self, stack='onedl', code=0, **variables):
        """Run the script; return its lines."""
        script = str(self.folder / 'tools' / 'setup_env.py')
        result = subprocess.run(
            [sys.executable, script, stack],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (result.returncode, result.stderr) == (code, '')
        return result.stdout.splitlines()

    def calls(self):
        """Return what the stub was asked since the last time, its pip checks aside."""
        file = self.folder / 'calls.jsonl'
        calls = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text('')
        return [' '.join(call) for call in calls if call[-1] != '--version']


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ('line', 'step'),
    [
        ('  [12/78] c++ -MMD -MF /tmp/x/roi_align.o.d -Wsign-compare', (12, 78)),
        ('[3/140] /usr/local/cuda/bin/nvcc --generate-dependencies', (3, 140)),
        ('     90 |   bool grad_layout_enforcement_enabled_ : 1 = true;', None),
        ('  copying mmcv/ops/[1/2]/x.py -> build', None),
    ],
)
def test_ninja_lines_are_parsed(setup_env, line, step):
    assert setup_env.parse_ninja(line) == step


@pytest.mark.parametrize(
    ('step', 'elapsed', 'text'),
    [
        ((13, 78), 125, 'mmcv: 13 of 78 files, 2 min 05 s so far, about 11 min left'),
        ((1, 2), 60, 'mmcv: 1 of 2 files, 1 min 00 s so far, about 1 min left'),
        ((77, 78), 770, 'mmcv: 77 of 78 files, 12 min 50 s so far, less than a minute left'),
        ((78, 78), 45.4, 'mmcv: 78 of 78 files, 45 s so far'),
    ],
)
def test_progress_says_elapsed_and_remaining_time(setup_env, step, elapsed, text):
    assert setup_env.progress_text(*step, elapsed).strip() == text


@pytest.fixture
def compiler(setup_env, monkeypatch):
    monkeypatch.setattr(setup_env, 'require_compiler', lambda: None)


def watch_compile(setup_env, stream):
    """Feed a compile of 12 files, 10 seconds each, to a watch; return what it showed."""
    seconds = iter(range(0, 1000, 10))
    screen = setup_env.Screen(stream)
    watch = setup_env.PipWatch(setup_env.STACKS['onedl'], screen, lambda: next(seconds))
    for line in (SDIST, BUILDING, *(f'  [{n}/12] c++ -MMD x.cpp' for n in range(1, 13))):
        watch(line)
    watch('  Created wheel for onedl-mmcv: filename=onedl_mmcv-2.3.6-cp311.whl size=1')
    watch('  [1/9] another package')
    return stream.getvalue()


@pytest.mark.usefixtures('compiler')
def test_compile_is_announced_and_shown_every_five_files(setup_env, monkeypatch):
    monkeypatch.setenv('MAX_JOBS', '2')
    assert watch_compile(setup_env, io.StringIO()).splitlines() == [
        '   mmcv has no ready wheel that fits here: compiling 78 files, about 14 minutes on 2'
        ' cores; this happens once',
        '   mmcv: 5 of 12 files, 50 s so far, about 2 min left',
        '   mmcv: 10 of 12 files, 1 min 40 s so far, less than a minute left',
        '   mmcv: 12 of 12 files, 2 min 00 s so far',
        '   mmcv: compiled in 2 min 10 s',
    ]


@pytest.mark.usefixtures('compiler')
def test_terminal_shows_every_file_on_one_line(setup_env):
    shown = watch_compile(setup_env, Terminal())
    announced, progress, end = shown.split('\n')
    assert 'this happens once' in announced
    assert [int(n) for n in re.findall(r'\r\x1b\[K   mmcv: (\d+) of 12', progress)] == list(
        range(1, 13)
    )
    assert progress.endswith('compiled in 2 min 10 s')
    assert end == ''


@pytest.mark.parametrize(
    ('stack', 'line'),
    [
        ('onedl', CACHED),
        ('onedl', '  Downloading onedl_mmcv-2.3.6-cp311-cp311-linux_x86_64.whl (3.4 MB)'),
        ('onedl', 'Processing ./wheels/onedl_mmcv-2.3.6-cp311-cp311-linux_x86_64.whl (from x)'),
        ('openmmlab', 'Processing ./wheels/mmcv-2.1.0-cp311-cp311-linux_x86_64.whl'),
    ],
)
def test_ready_wheel_is_named(setup_env, stack, line):
    stream = io.StringIO()
    setup_env.PipWatch(setup_env.STACKS[stack], setup_env.Screen(stream))(line)
    wheel = re.search(r'\w*mmcv-\S+whl', line)[0]
    assert stream.getvalue() == f'   mmcv: taking the ready wheel {wheel}, nothing to compile\n'


@pytest.mark.parametrize(
    ('output', 'sentence'),
    [
        ('OSError: [Errno 28] No space left on device', 'the disk is full'),
        (
            'c++: fatal error: Killed signal terminated program cc1plus\nninja: build stopped',
            'MAX_JOBS=1',
        ),
        ('OSError: CUDA_HOME environment variable is not set.', 'nvcc'),
        ('ImportError: libGL.so.1: cannot open shared object file', 'libgl1'),
        ('x.cpp:3: error: no such member\nninja: build stopped: subcommand failed.', "'error:'"),
        (NO_NETWORK, 'check the network'),
        ('ERROR: No matching distribution found for torch==2.13.0', 'no torch==2.13.0 for'),
        (f'{NO_NETWORK}\nERROR: No matching distribution found for torch', 'check the network'),
        ('ERROR: something else', 'the general sentence'),
    ],
)
def test_output_is_explained(setup_env, output, sentence):
    assert sentence in setup_env.explain(output.splitlines(), 'the general sentence')


@pytest.mark.parametrize('version', [(3, 9, 18), (3, 14, 0), (2, 7, 18)])
def test_unfit_python_is_refused(setup_env, version):
    with pytest.raises(setup_env.SetupError, match=r'3\.10 to 3\.13 is needed.*PYTHON='):
        setup_env.check_python(version)


@pytest.mark.parametrize('version', [(3, 10, 2), (3, 13, 9)])
def test_fit_python_is_accepted(setup_env, version):
    setup_env.check_python(version)


def test_set_up_installs_in_order_and_checks(project):
    project.answer({'to': '-e .', 'output': f'Collecting onedl-mmcv\n{CACHED}'})
    lines = project.run()
    tools, toolboxes, check = project.calls()
    assert re.search(r'torch==\S+ numpy==\S+ setuptools==\S+ ninja==\S+ psutil==\S+ wheel', tools)
    assert 'onedl' not in tools
    assert toolboxes.endswith('--no-build-isolation -e .[onedl,demo,dev]')
    assert check == '-c import mmcv.ops, mmdet, mmseg'
    assert any('taking the ready wheel' in line for line in lines)
    assert lines[-1].startswith('.venv is complete')


def test_second_run_returns_at_once(project):
    project.run()
    project.calls()
    assert project.run() == ['.venv is complete']
    assert project.calls() == []


def test_changed_pin_installs_again(project):
    project.run()
    pins = project.folder / 'pyproject.toml'
    pins.write_text(pins.read_text().replace('onedl-mmcv==2.3.6', 'onedl-mmcv==2.3.7'))
    project.calls()
    project.run()
    assert len(project.calls()) == 3


def test_moved_checkout_installs_again(project, tmp_path_factory):
    project.run()
    moved = tmp_path_factory.mktemp('elsewhere') / 'project'
    project.folder = project.folder.rename(moved)
    project.calls()
    project.run()
    assert len(project.calls()) == 3


def test_second_stack_has_its_own_environment(project):
    lines = project.run('openmmlab')
    assert lines[-1].startswith('.venv-openmmlab is complete')
    assert (project.folder / '.venv-openmmlab' / '.complete').is_file()
    assert not (project.folder / '.venv' / '.complete').exists()
    assert '-e .[openmmlab,demo,dev]' in project.calls()[1]


def test_failed_set_up_is_explained_and_continued(project):
    noise = "WARNING: Location 'file:///simple/torch/' is ignored: it is not a directory."
    output = '\n'.join([*(f'line {n}' for n in range(50)), noise, NO_NETWORK])
    project.answer({'to': 'torch==', 'output': output, 'code': 1, 'once': True})
    lines = project.run(code=1)
    assert lines[-1].startswith('set-up failed: pip could not reach the package index')
    assert lines[-2] == '--- all of it: .venv/setup.log'
    assert 'line 31' in lines
    assert 'line 30' not in lines
    assert noise not in lines
    assert noise in (project.folder / '.venv' / 'setup.log').read_text()
    assert project.run()[-1].startswith('.venv is complete')


@pytest.fixture
def bare_path(tmp_path_factory):
    """A PATH without compilers."""
    return str(tmp_path_factory.mktemp('empty'))


@pytest.mark.parametrize('line', [SDIST, BUILDING])
def test_missing_compiler_is_told_before_the_compile(project, bare_path, line):
    project.answer({'to': '-e .', 'output': line, 'sleep': 50})
    start = time.monotonic()
    lines = project.run(code=1, PATH=bare_path)
    assert time.monotonic() - start < 25
    assert re.fullmatch(r'set-up failed: .*a C\+\+ compiler \(c\+\+\) cannot be found.*', lines[-1])


def test_ready_wheel_needs_no_compiler(project, bare_path):
    project.answer({'to': '-e .', 'output': CACHED})
    assert project.run(PATH=bare_path)[-1].startswith('.venv is complete')


def test_missing_headers_are_told(setup_env, monkeypatch, tmp_path):
    monkeypatch.setattr(setup_env.shutil, 'which', lambda name: name)
    monkeypatch.setattr(setup_env.sysconfig, 'get_path', lambda name: str(tmp_path))
    with pytest.raises(setup_env.SetupError, match=r'Python\.h.*python3-dev'):
        setup_env.require_compiler()


@pytest.mark.parametrize('module', ['venv', 'ensurepip'])
def test_missing_venv_module_is_told(project, module):
    shutil.rmtree(project.folder / '.venv')
    script = project.folder / 'tools' / 'setup_env.py'
    code = (
        f'import runpy, sys; sys.modules[{module!r}] = None; sys.argv = ["setup_env", "onedl"];'
        f'runpy.run_path({str(script)!r}, run_name="__main__")'
    )
    result = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (1, '')
    last = result.stdout.splitlines()[-1]
    assert re.search(rf'lacks the module {module} \(.*apt install python3\.\d+-venv\)', last)


@pytest.mark.skipif(not Path('/dev/full').exists(), reason='needs /dev/full')
def test_full_disk_is_told_when_the_log_cannot_be_written(project):
    (project.folder / '.venv' / 'setup.log').symlink_to('/dev/full')
    assert project.run(code=1)[-1].startswith('set-up failed: the disk is full')


def test_unfit_mmcv_is_rebuilt_once(project):
    project.answer({'to': 'import mmcv', 'output': BAD_MMCV, 'code': 1, 'once': True})
    lines = project.run()
    assert [call.split('install -v --progress-bar off ')[-1] for call in project.calls()[2:]] == [
        '-c import mmcv.ops, mmdet, mmseg',
        '--no-cache-dir --force-reinstall --no-deps --no-build-isolation --no-binary onedl-mmcv'
        ' onedl-mmcv==2.3.6',
        '-c import mmcv.ops, mmdet, mmseg',
    ]
    assert any('building it again' in line for line in lines)
    assert lines[-1].startswith('.venv is complete')


def test_machine_without_libgl_gets_the_headless_opencv(project):
    output = 'ImportError: libGL.so.1: cannot open shared object file: No such file or directory'
    project.answer({'to': 'import mmcv', 'output': output, 'code': 1, 'once': True})
    lines = project.run()
    _, _, _, mend, check = project.calls()
    assert re.search(r'--force-reinstall --no-deps opencv-python-headless==[\d.]+$', mend)
    assert check == '-c import mmcv.ops, mmdet, mmseg'
    assert lines[-1].startswith('.venv is complete')


def test_mmcv_that_never_fits_fails_with_the_import_error(project):
    project.answer({'to': 'import mmcv', 'output': BAD_MMCV, 'code': 1})
    lines = project.run(code=1)
    assert BAD_MMCV in lines
    assert 'fails' in lines[-1]
    assert len(project.calls()) == 5
    assert not (project.folder / '.venv' / '.complete').exists()


def test_other_import_error_rebuilds_nothing(project):
    output = 'AssertionError: MMCV==2.3.6 is used but incompatible.'
    project.answer({'to': 'import mmcv', 'output': output, 'code': 1})
    lines = project.run(code=1)
    assert output in lines
    assert len(project.calls()) == 3


@pytest.mark.slow
def test_environment_is_created_with_pip(setup_env, monkeypatch, tmp_path):
    monkeypatch.setattr(setup_env, 'ROOT', tmp_path)
    stack = setup_env.STACKS['openmmlab']
    setup = setup_env.Setup(stack, setup_env.Screen(io.StringIO()), io.StringIO())
    setup.create_venv()
    pip = [str(tmp_path / '.venv-openmmlab' / 'bin' / 'python'), '-m', 'pip', '--version']
    assert subprocess.run(pip, capture_output=True).returncode == 0
    setup.log = None  # a second call must run nothing
    setup.create_venv()


@pytest.mark.skipif(not shutil.which('make'), reason='needs make')
@pytest.mark.parametrize('stack', ['onedl', 'openmmlab'])
def test_makefile_uses_the_folder_of_the_stack(setup_env, stack):
    outer_make = ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'MAKEOVERRIDES', 'STACK')
    result = subprocess.run(
        ['make', '-n', 'test', f'STACK={stack}'],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in outer_make},
        capture_output=True,
        text=True,
    )
    assert f'tools/setup_env.py {stack}\n' in result.stdout
    assert f'{setup_env.STACKS[stack].venv}/bin/python -m pytest' in result.stdout
