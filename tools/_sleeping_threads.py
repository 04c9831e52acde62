"""Let OpenMP's threads sleep while they wait: every tool imports this before anything else.

By default they spin for milliseconds at the end of each parallel region. Where other processes
want the cores, the spinning keeps the working threads off them, and a training becomes many times
slower. The OpenMP library reads its settings once, when torch loads it. What the user has set
stays; the package itself changes no environment.
"""

import os

# Of the OpenMP standard, of GNU's library, and of Intel's and LLVM's.
SETTINGS = ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT', 'KMP_BLOCKTIME')
OURS = {'OMP_WAIT_POLICY': 'PASSIVE'}

if not any(name in os.environ for name in SETTINGS):
    os.environ.update(OURS)
