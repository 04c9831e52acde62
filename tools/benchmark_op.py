"""Time the fused SN against its rivals on the CPU, side by side; print tables, write data.

python tools/benchmark_op.py --out docs/speed
"""

import argparse
import json
from pathlib import Path

import _sleeping_threads  # noqa: F401
import torch

from sn_openmmlab.benchmarks import tables
from sn_openmmlab.benchmarks.cases import all_cases, measure
from sn_openmmlab.benchmarks.chart import draw_growth
from sn_openmmlab.benchmarks.growth import measure_growth
from sn_openmmlab.benchmarks.machine import describe
from sn_openmmlab.benchmarks.timing import keep_freed_memory

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
    title = f'{data["machine"]["device"]}, {args.threads} threads, float32'
    draw_growth(data['growth'], title, args.out / 'growth.png')
    (args.out / 'cpu.json').write_text(json.dumps(data, indent=1) + '\n')
    shown = f'# The op on {title.rsplit(",", 1)[0]}\n\n{tables.all_tables(data)}\n'
    (args.out / 'cpu.md').write_text(shown)
    print(shown)


if __name__ == '__main__':
    main()
