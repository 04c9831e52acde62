"""Kernels written in Triton, for CUDA.

``layout.py`` chooses the tiles and ``launch.py`` starts the kernels; ``tiles.py``, ``merge.py`` and
``scopes.py`` are what the kernels of ``passes.py`` and ``tables.py`` are made of.
"""
