"""Time the fused SN and its baselines on the CPU; print tables and write the data.

python -m studies.benchmark_op --out docs/speed
"""

import argparse
import json
from pathlib import Path

import torch

from studies.benchmarks.cases import all_cases, measure
from studies.benchmarks.growth import measure_growth
from studies.benchmarks.timing import keep_freed_memory
from studies.presentation.benchmark_tables import all_tables
from studies.presentation.figures import draw_growth
from studies.presentation.machine import describe

ROUNDS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument(
        '--out', type=Path, required=True, help='the folder of cpu.json and growth.png'
    )
    parser.add_argument('--threads', type=int, default=2, help='threads of the CPU')
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
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
    args.out.mkdir(parents=True, exist_ok=True)
    title = f'{data["machine"]["device"]}, {args.threads} threads, float32'
    draw_growth(data['growth'], title, args.out / 'growth.png')
    (args.out / 'cpu.json').write_text(json.dumps(data, indent=1) + '\n')
    shown = f'# The op on {title.rsplit(",", 1)[0]}\n\n{all_tables(data)}\n'
    (args.out / 'cpu.md').write_text(shown)
    print(shown)


if __name__ == '__main__':
    main()
