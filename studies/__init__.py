"""How this project measures itself: benchmarks, experiments and the demo data. Not installed.

The commands are the files of this folder: ``python -m studies.benchmark_op --out docs/speed``, from
the root of the repository.
"""

# Before torch is imported, as in every tool.
from tools import _sleeping_threads  # noqa: F401
