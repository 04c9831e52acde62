"""Whether a forward pass is the repetition that activation checkpointing makes of it."""

import torch


def is_recomputation() -> bool:
    """Return whether this forward pass runs inside of a backward pass.

    Activation checkpointing repeats forward passes there: ``with_cp`` of the toolboxes, and
    ``activation_checkpointing`` of mmengine.
    """
    # torch has no public question for it. A compiled graph does not repeat what changes buffers.
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1
