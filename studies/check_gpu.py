"""Check and time everything on a CUDA GPU in at most 8 minutes, with torch and triton alone.

python -m studies.check_gpu --out FOLDER
"""

import argparse
import sys
import time
from pathlib import Path

import torch

from sn_openmmlab.errors import UsageError, exit_with_sentence
from studies.benchmarks.bandwidth import STREAMS, copy_bandwidth, with_bandwidth
from studies.benchmarks.cases import all_cases, measure
from studies.benchmarks.correctness import check_backend
from studies.benchmarks.growth import measure_growth
from studies.presentation import benchmark_tables
from studies.presentation.machine import describe
from studies.presentation.output import make_folder, write_data

ROUNDS = 20
SECONDS = 7 * 60
ADDRESS = 'tcp://127.0.0.1:29533'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--out', type=Path, required=True, help='the folder of the data file')
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise UsageError('this machine has no CUDA GPU: run the check on one that has.')
    make_folder(args.out)
    start = time.monotonic()
    device = torch.device('cuda')
    # SyncBN's kernels need a process group, even of one process.
    torch.distributed.init_process_group('nccl', init_method=ADDRESS, rank=0, world_size=1)
    checks = check_backend('aten', device)
    try:
        checks += check_backend('triton', device)
    except Exception as error:
        print(f'The Triton backend does not run here; "SN fused" is the ATen backend: {error}')
        checks.append({**checks[0], 'backend': 'triton', 'errors': {'y': float('inf')}})
    print(benchmark_tables.correctness_table(checks), flush=True)
    copy = copy_bandwidth(device, ROUNDS)
    data = {
        'machine': describe(device),
        'rounds': ROUNDS,
        'checks': checks,
        'copy_bytes_per_second': copy,
        'growth': measure_growth(device, ROUNDS),
        'records': [],
    }
    write_data(data, args.out / 'gpu.json')
    skipped = []
    for case in all_cases():
        if time.monotonic() - start > SECONDS:
            skipped.append(case)
            continue
        for record in measure(case, device, ROUNDS):
            moves = record['what'] in STREAMS
            data['records'].append(with_bandwidth(record, copy) if moves else record)
        write_data(data, args.out / 'gpu.json')
    print(benchmark_tables.all_tables(data))
    print(benchmark_tables.bandwidth_table([r for r in data['records'] if 'share_of_copy' in r]))
    for case in skipped:
        print(f'not measured for lack of time: {case}')
    torch.distributed.destroy_process_group()
    if any(max(check['errors'].values()) > check['bound'] for check in checks):
        sys.exit(1)


if __name__ == '__main__':
    exit_with_sentence(main)
