"""Let OpenMP's threads sleep while they wait; every tool imports this first.

By default they spin for milliseconds at the end of each parallel region. On a busy machine this
keeps other threads from the cores and slows a training down several times. The OpenMP library
reads its settings once, when torch loads it. The user's own settings stay, and the package itself
changes no environment.
"""

import os

# The names in the OpenMP standard, in GNU's library, and in Intel's and LLVM's.
SETTINGS = ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT', 'KMP_BLOCKTIME')
OURS = {'OMP_WAIT_POLICY': 'PASSIVE'}

if not any(name in os.environ for name in SETTINGS):
    os.environ.update(OURS)
