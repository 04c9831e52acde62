"""The documented op `switch_norm`: its checks, the choice of a backend, and its derivatives.

`fused.py` is the autograd function that runs the stages of a fused backend. For a process alone,
`whole.py` and `whole_triton.py` run those of C++ and of Triton as one. `expression.py` assembles
the plain backend, which autograd differentiates. It and `fused.py` pool the batch over processes by
`batch.py`.
"""
