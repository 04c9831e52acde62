"""Time the fused SN and its baselines on the CPU; print tables and write the data.

python -m studies.benchmark_op --out docs/speed
"""

import torch

from sn_openmmlab.errors import exit_with_sentence
from studies.benchmarks.cases import all_cases, measure
from studies.benchmarks.command_line import read_arguments
from studies.benchmarks.growth import measure_growth
from studies.benchmarks.timing import keep_freed_memory
from studies.presentation.benchmark_tables import all_tables
from studies.presentation.figures import draw_growth
from studies.presentation.machine import describe
from studies.presentation.output import write_data

ROUNDS = 7


def main() -> None:
    args = read_arguments(__doc__, 'cpu.json, cpu.md and growth.png')
    kept = keep_freed_memory()
    device = torch.device('cpu')
    records = []
    for case in all_cases():
        records += measure(case, device, ROUNDS)
        print(case, flush=True)
    data = {
        'machine': describe(device),
        'keeps_freed_memory': kept,
        'rounds': ROUNDS,
        'records': records,
        'growth': measure_growth(device, ROUNDS),
    }
    title = f'{data["machine"]["device"]}, {args.threads} threads, float32'
    draw_growth(data['growth'], title, args.out / 'growth.png')
    write_data(data, args.out / 'cpu.json')
    shown = f'# The op on {title.rsplit(",", 1)[0]}\n\n{all_tables(data)}\n'
    (args.out / 'cpu.md').write_text(shown)
    print(shown)


if __name__ == '__main__':
    exit_with_sentence(main)
