"""The loops for every processor pass the same tests as those for this one."""

from pathlib import Path

import torch

HERE = Path(__file__).parent
FILES = [HERE / 'test_sums.py', HERE / 'test_types.py']


def test_torchs_variable_asks_for_the_baseline(run_tool):
    script = (
        'from sn_openmmlab.kernels.cpp.library import why_missing; why_missing(); import torch; '
        'print(torch.ops.sn_openmmlab.instruction_set())'
    )

    done = run_tool('-c', script, env={'ATEN_CPU_CAPABILITY': 'default'})

    assert done.stdout.strip() == 'baseline'


def test_this_processor_gets_the_loops_for_it():
    capability = torch.backends.cpu.get_cpu_capability()

    expected = 'avx2' if capability in ('AVX2', 'AVX512') else 'baseline'
    assert torch.ops.sn_openmmlab.instruction_set() == expected


def test_the_baseline_passes_the_tests_of_the_loops(run_tool):
    command = ('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-k', 'not hundred', *FILES)

    done = run_tool(*command, env={'ATEN_CPU_CAPABILITY': 'default'})

    assert ' passed' in done.stdout, done.stdout[-2000:]
