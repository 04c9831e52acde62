"""Time what the host spends on SN's Triton path, without a GPU, beside BatchNorm's whole calls.

python -m studies.benchmark_host --out docs/speed --threads 1
"""

from importlib.util import find_spec

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.benchmarks.command_line import read_arguments
from studies.benchmarks.host_time import time_on_host
from studies.presentation.benchmark_tables import host_table
from studies.presentation.machine import describe
from studies.presentation.output import write_data

ROUNDS = 51
EXPLANATION = """\
CPU microseconds of the calling thread per call, median (least to most) of {rounds} rounds in which
all take turns. Where CUDA would be called, nothing is. "SN fused" is the whole call of the layer in
training, and backward the whole call of autograd, as for BN. "SN, launches alone" is the Python
function in it that looks up the plan, allocates and launches. The last row is what torch takes for
any autograd function in Python, by one that computes nothing.
"""


def main() -> None:
    args = read_arguments(__doc__, 'host.json and host.md')
    if find_spec('triton') is None:
        raise UsageError("this needs Triton, which is not installed: pip install 'triton>=3.6,<4'")
    from studies.benchmarks.stubbed_gpu import stub_gpu

    stub_gpu(90)
    data = {'machine': describe(torch.device('cpu')), 'microseconds': time_on_host(ROUNDS)}
    write_data(data, args.out / 'host.json')
    title = f'# Host time of the Triton path, on {data["machine"]["device"]}'
    shown = f'{title}\n\n{EXPLANATION.format(rounds=ROUNDS)}\n{host_table(data)}\n'
    (args.out / 'host.md').write_text(shown)
    print(shown)


if __name__ == '__main__':
    exit_with_sentence(main)
