"""Read a layer's tensors at less cost than as its attributes, one by one."""

from torch import Tensor, nn


def own_tensors(layer: nn.Module) -> tuple[Tensor | None, ...]:
    """Return γ, β, λ, λ′, the running mean and variance, and the number of batches."""
    own, buffers = layer._parameters, layer._buffers
    try:
        return (
            own['weight'],
            own['bias'],
            own['mean_weight'],
            own['var_weight'],
            buffers['running_mean'],
            buffers['running_var'],
            buffers['num_batches_tracked'],
        )
    except KeyError:
        # The copies of DataParallel, FSDP and parametrizations keep some of them elsewhere.
        return (
            layer.weight,
            layer.bias,
            layer.mean_weight,
            layer.var_weight,
            layer.running_mean,
            layer.running_var,
            layer.num_batches_tracked,
        )
