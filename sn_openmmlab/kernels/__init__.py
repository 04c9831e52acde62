"""The arithmetic of the fused op, one package per way to run it.

Each package has two files with the same functions: ``passes.py`` works on the big tensors, four
passes in all, and ``tables.py`` on the (N, C) tables between them.
"""
