"""The plain expression, which autograd differentiates and every recording is made of.

It is written in the part of Python that `torch.jit.script` compiles, so that the formula stands
once. It is also what the other backends are tested against.
"""
