"""Kernels written in Triton, for CUDA.

``tiles.py`` chooses the tiles and ``launch.py`` starts the kernels; ``addressing.py``, ``merge.py``
and ``pooling.py`` are what the kernels of ``passes.py`` and ``tables.py`` are made of.
"""
