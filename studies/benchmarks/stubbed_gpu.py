"""A GPU that compiles kernels and runs none, so that the host time of launches can be measured.

Triton's driver is replaced by one that only names a GPU. All is as on a real one up to the C call
that would hand a kernel to CUDA, which does nothing.
"""

from collections import deque
from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.driver import CudaLauncher
from triton.runtime import driver

from sn_openmmlab.ops import backends

# The names of the kernels that were launched last, in their order.
launched: deque[str] = deque(maxlen=1000)


def stub_gpu(capability: int) -> None:
    """Let the op, forced to the Triton backend, take tensors on the CPU as if on a GPU.

    Args:
        capability: the compute capability to compile for, such as 90 for 9.0.
    """
    properties = {'max_shared_mem': 2**17, 'multiprocessor_count': 1, 'warpSize': 32}
    utils = SimpleNamespace(
        load_binary=lambda *_: (None, None, 0, 0, 1024),
        unload_module=lambda _: None,
        get_device_properties=lambda _: properties,
    )
    driver.set_active(
        SimpleNamespace(
            get_current_target=lambda: GPUTarget('cuda', capability, 32),
            get_current_device=lambda: -1,
            get_current_stream=lambda _: 0,
            launcher_cls=_Launcher,
            utils=utils,
        )
    )
    # It takes tensors on the CPU where Triton interprets.
    backends._interprets = lambda: True


class _Launcher(CudaLauncher):
    """Triton's own launcher, without what it would compile to call CUDA."""

    def __init__(self, src: Any, metadata: Any) -> None:
        name = metadata.name
        self.launch = lambda *_: launched.append(name)
        self.num_ctas = 1
        self.launch_cooperative_grid = self.launch_pdl = self.gsan_enabled = False
        self.global_scratch_size = self.profile_scratch_size = 0
        self.global_scratch_align = self.profile_scratch_align = 1
        self.arg_annotations = self.kernel_signature = None
