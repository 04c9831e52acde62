"""Run a test file's ``on_rank(rank, world)`` as one rank of a process group: see ``run_ranks``."""

import runpy
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

file, folder, rank, world = *sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
dist.init_process_group(
    'gloo',
    init_method=f'file://{folder}/store',
    rank=rank,
    world_size=world,
    timeout=timedelta(minutes=5),
)
torch.save(runpy.run_path(file)['on_rank'](rank, world), f'{folder}/{rank}.pt')
dist.destroy_process_group()
