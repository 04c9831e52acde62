"""The machine of a measurement."""

import platform
from pathlib import Path

import torch


def describe(device: torch.device) -> dict[str, str | int]:
    """Return the device, the number of threads, and the versions of torch and Python."""
    name = torch.cuda.get_device_name(device) if device.type == 'cuda' else _cpu()
    return {
        'device': name,
        'threads': torch.get_num_threads(),
        'torch': torch.__version__,
        'python': platform.python_version(),
    }


def _cpu() -> str:
    table = Path('/proc/cpuinfo')
    if table.is_file():
        for line in table.read_text().splitlines():
            if line.startswith('model name'):
                return line.split(':', 1)[1].strip()
    return platform.processor() or platform.machine()
