"""The Switchable Normalization layer."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.fx import Proxy
from torch.nn.modules.instancenorm import _InstanceNorm

from sn_openmmlab.errors import WeightsError
from sn_openmmlab.kernels.contract import Mixture
from sn_openmmlab.layers.arguments import (
    check_channels,
    check_choice,
    check_eps,
    check_flag,
    check_momentum,
    check_num_features,
)
from sn_openmmlab.layers.choice import (
    CHOICES,
    Choice,
    check_scope_choice,
    chosen_control,
    used_controls,
)
from sn_openmmlab.layers.leaf import is_counted, record_leaf
from sn_openmmlab.layers.loading import check_weights
from sn_openmmlab.layers.own_tensors import own_tensors
from sn_openmmlab.layers.recomputation import is_recomputation
from sn_openmmlab.layers.scripted import scripted_forward
from sn_openmmlab.layers.settings import layer_name, record_settings, settings_of
from sn_openmmlab.ops.arguments import check_groups, check_ratio_groups, check_scopes
from sn_openmmlab.ops.compute import compute_switch_norm
from sn_openmmlab.ops.counted import counted_switch_norm
from sn_openmmlab.ops.running import Running


class SwitchNorm(_InstanceNorm):
    """Switchable Normalization (Luo et al., ICLR 2019) of inputs of 2 to 5 dimensions.

    The layer mixes the means μ_k and variances σ_k² of several scopes. The importance ratios w and
    w′ of the mix are learned: one softmax for the means, one for the variances (Eq. 3 and 5).

        y = γ · (x - Σ w_k μ_k) / sqrt(Σ w′_k σ_k² + ε) + β
        w = softmax(λ),    w′ = softmax(λ′)

    | scope | pools for each entry of (N, C) | as in |
    |---|---|---|
    | `'in'` | the positions of its channel in its sample | instance norm |
    | `'gn'` | its group of channels in its sample | group norm |
    | `'ln'` | all channels of its sample | layer norm |
    | `'bn'` | its channel in all samples | batch norm |

    While training, all statistics are those of the batch. In evaluation `'bn'` uses the running
    statistics, and the other scopes use those of each sample. With `track_running_stats=False`,
    `'bn'` uses the batch in evaluation too, as in BatchNorm. The running variance averages the
    variance that training normalizes with: BatchNorm's factor n / (n - 1) is left out.

    Statistics are computed in float32 for half-precision inputs. An input without samples gives an
    empty output and zero gradients, and leaves the running statistics as they are. So does a
    forward pass that activation checkpointing repeats.

    After `sparsify` the layer is sparse: its means and its variances each use one scope, and the
    buffers `mean_choice` and `var_choice` say which.

    A state dict records `scopes`, `correction` and, with `'gn'`, `num_groups` in its metadata. A
    layer that was built with others, or with another number of scopes, does not load it.

    mmengine and mmcv recognise the layer as a norm layer (`norm_decay_mult`) because it derives
    from torch's `_InstanceNorm`. Tools that rewrite BatchNorms, such as SyncBN conversion and
    conv-BN fusion, leave it alone.

    Args:
        num_features: C, the number of channels.
        eps: ε, added to the mixed variance.
        momentum: the share of the new value in the running statistics, in [0, 1]; None for the
            average over all batches.
        affine: whether the layer has γ and β.
        track_running_stats: whether `'bn'` keeps running statistics; without `'bn'` there are none
            to keep.
        scopes: which statistics to mix, in the order of the control parameters: any of `'in'`,
            `'gn'`, `'ln'`, `'bn'`, each at most once.
        num_groups: the number of groups of channels of `'gn'`.
        correction: 0 for the variance of Eq. 2, which divides by the number of positions; 1 for
            the authors' code, which divides the instance variance by one less.
        norm_eval: whether the layer stays in evaluation mode, with the running statistics that it
            has, whatever `train` is called with; like the toolboxes' `norm_eval` for BatchNorm.
        num_ratio_groups: G. Each of G equal groups of channels learns ratios of its own (group SN,
            Sec. 2); 1 for one mix of all channels, as in the paper's experiments.
        device: the device of parameters and buffers.
        dtype: the type of parameters and buffers.

    Attributes:
        weight: γ, (C,), initialised to 1, or None.
        bias: β, (C,), initialised to 0, or None.
        mean_weight: λ, (number of scopes,), or (G, number of scopes) with G > 1 groups of ratios,
            initialised to 1.
        var_weight: λ′, in the same shape, initialised to 1.
        mean_choice: the index in `scopes` of the scope that the means use, (G,), int64; None while
            the layer is not sparse.
        var_choice: the same for the variances.
        running_mean: (C,), initialised to 0, or None.
        running_var: (C,), initialised to 1, or None.
        num_batches_tracked: a scalar, or None.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: if an argument is out of its range, a scope is unknown or repeated, or the
            groups do not divide the channels. In `forward`: if the input is not floating point, not
            of 2 to 5 dimensions, or not of C channels.
        WeightsError: in `load_state_dict`, whatever `strict` is, if the weights were trained with
            other settings.

    Example:
        ```python
        layer = SwitchNorm(64, scopes=('in', 'ln', 'bn'))
        y = layer(torch.randn(2, 64, 32, 32))  # the same shape
        mean_ratios, var_ratios = layer.importance_ratios()  # 1/3 each, before training
        ```
    """

    _abbr_ = 'sn'
    # Read by torch.jit.script.
    __constants__: Sequence[str] = (*_InstanceNorm.__constants__, 'norm_eval')
    __jit_unused_properties__ = ('is_sparse', 'used_scopes')
    # The defaults for layers that a conversion or an older pickle made.
    norm_eval: bool = False
    num_ratio_groups: int = 1
    # Two `Choice`s once it is sparse; torch.jit.script cannot read such an annotation.
    _chosen = None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        scopes: Sequence[str] = ('in', 'ln', 'bn'),
        num_groups: int = 32,
        correction: int = 0,
        norm_eval: bool = False,
        num_ratio_groups: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_num_features(num_features)
        check_eps(eps)
        check_momentum(momentum)
        scopes = check_scopes(scopes)
        check_groups(num_groups, num_features, scopes)
        check_ratio_groups(num_ratio_groups, num_features)
        check_choice('correction', correction, (0, 1))
        flags = {'affine': affine, 'track_running_stats': track_running_stats}
        for name, value in {**flags, 'norm_eval': norm_eval}.items():
            check_flag(name, value)
        tracks = track_running_stats and 'bn' in scopes
        super().__init__(num_features, eps, momentum, affine, tracks, device=device, dtype=dtype)
        self.scopes = scopes
        self.num_groups = num_groups
        self.correction = correction
        self.num_ratio_groups = num_ratio_groups
        shape = (num_ratio_groups, len(scopes)) if num_ratio_groups > 1 else (len(scopes),)
        for name in ('mean_weight', 'var_weight'):
            control = torch.ones(shape, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(control))
        self.norm_eval = norm_eval
        self.train()

    def reset_parameters(self) -> None:
        """Set γ, β, λ, λ′ and the running statistics to their initial values, without a choice."""
        super().reset_parameters()
        self._chosen = None
        self._buffers.update(dict.fromkeys(CHOICES))
        for name in ('mean_weight', 'var_weight'):
            if hasattr(self, name):
                nn.init.ones_(getattr(self, name))

    def train(self, mode: bool = True) -> 'SwitchNorm':
        """Set the mode, which stays evaluation with `norm_eval`, and return the layer."""
        return super().train(False if self.norm_eval else mode)

    def forward(self, x: Tensor) -> Tensor:
        """Normalize `x`.

        Args:
            x: (N, C), (N, C, L), (N, C, H, W) or (N, C, D, H, W), of any floating-point type.

        Returns:
            The output, in the shape, type and memory format of `x`.
        """
        return self._normalize(x)

    def _normalize(self, x: Tensor) -> Tensor:
        """Normalize `x`; a subclass's `forward` may add to it."""
        if torch.jit.is_scripting():
            return scripted_forward(
                x,
                self.num_features,
                (self.weight, self.bias),
                (self.mean_weight, self.var_weight),
                (self.mean_choice, self.var_choice),
                (self.running_mean, self.running_var, self.num_batches_tracked),
                self.training and not self.norm_eval,
                self.momentum,
                [scope for scope in self.scopes],
                self.num_groups,
                self.correction,
                self.eps,
            )
        else:  # torch.jit.script compiles no branch that it cannot reach
            return self._normalize_eagerly(x)

    @torch.jit.unused
    def _normalize_eagerly(self, x: Tensor) -> Tensor:
        if isinstance(x, Proxy):
            return record_leaf(self, x)
        check_channels(x, self.num_features)
        weight, bias, *controls, mean, var, num_batches = own_tensors(self)
        scopes, training, group, instance_variance = self.scopes, self.training, self._group(), True
        if var is None or (training and (num_batches is None or is_recomputation())):
            mean = None  # Nothing to use in evaluation, or to move in training.
        if self._chosen is not None:
            scopes, controls = self.used_scopes, self._used_controls(controls)
            instance_variance = training or mean is None or not self._takes_variance_of_batch()
        tracks = mean is not None and 'bn' in scopes
        running = Running(mean, var, num_batches, self.momentum) if tracks else None
        mixture = Mixture(scopes, self.num_groups, self.correction, self.eps, instance_variance)
        arguments = (x, (weight, bias), controls, mixture, running, training)
        if group is None and is_counted(self):
            return counted_switch_norm(*arguments)
        return compute_switch_norm(*arguments, group)

    @property
    def is_sparse(self) -> bool:
        """Whether the ratios are fixed to 1 for one scope and 0 for the others."""
        return self._chosen is not None

    @property
    def used_scopes(self) -> tuple[str, ...]:
        """The scopes that the layer mixes: `scopes`, or in a sparse layer those that it chose."""
        if self._chosen is None:
            return self.scopes
        return tuple(self.scopes[k] for k in _places(self._chosen))

    def choose(self, mean_choice: Tensor, var_choice: Tensor) -> None:
        """Make the layer sparse, or change its choice.

        Args:
            mean_choice: the index in `scopes` of the scope that the means use from now on, for each
                group of ratios, (G,) or, with one group, a scalar.
            var_choice: the same for the variances.

        Raises:
            ValueError: if a choice is of another shape or names no scope.
        """
        given = dict(zip(CHOICES, (mean_choice, var_choice), strict=True))
        for name, choice in given.items():
            given[name] = choice = choice.detach().long().reshape(-1)
            check_scope_choice(name, choice, self.num_ratio_groups, self.scopes)
        for name, choice in given.items():
            setattr(self, name, choice.to(self.mean_weight.device, copy=True))
        self._chosen = tuple(tuple(choice.tolist()) for choice in given.values())

    def _used_controls(self, controls: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return λ and λ′ of the scopes that a sparse layer uses, with the ratios of its choice."""
        choices = (self.mean_choice, self.var_choice)
        return used_controls(controls, choices, _places(self._chosen))

    def _takes_variance_of_batch(self) -> bool:
        return self._chosen is not None and {self.scopes[k] for k in self._chosen[1]} == {'bn'}

    def importance_ratios(self) -> tuple[Tensor, Tensor]:
        """Return the importance ratios of Eq. 5.

        Returns:
            w of the means and w′ of the variances, in the order of `scopes`, (number of scopes,)
                each, or (G, number of scopes) with G > 1 groups of ratios; detached, in float32.
        """
        controls = (self.mean_weight.detach(), self.var_weight.detach())
        if self.is_sparse:
            controls = map(chosen_control, controls, (self.mean_choice, self.var_choice))
        return tuple(torch.softmax(control.float(), -1) for control in controls)

    def extra_repr(self) -> str:
        shown = f'{super().extra_repr()}, scopes={self.scopes}, correction={self.correction}'
        shown = f'{shown}, num_groups={self.num_groups}' if 'gn' in self.scopes else shown
        if self.num_ratio_groups > 1:
            shown = f'{shown}, num_ratio_groups={self.num_ratio_groups}'
        shown = f'{shown}, used_scopes={self.used_scopes}' if self.is_sparse else shown
        return f'{shown}, norm_eval=True' if self.norm_eval else shown

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, *args: Any) -> None:
        super()._save_to_state_dict(destination, prefix, *args)
        record_settings(settings_of(self), destination, prefix)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        *args: Any,
    ) -> None:
        check_weights(self, settings_of(self), state_dict, prefix, local_metadata)
        choices = {n: state_dict[prefix + n] for n in CHOICES if prefix + n in state_dict}
        if choices:
            try:
                self._load_choice(choices)
            except ValueError as error:
                place = layer_name(prefix[:-1])
                raise WeightsError(f'The weights of {place} do not fit: {error}') from error
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _load_choice(self, choices: dict[str, Tensor]) -> None:
        if len(choices) < len(CHOICES):
            (lacking,) = set(CHOICES) - set(choices)
            raise ValueError(f'they have no {lacking}, but a sparse layer needs both choices.')
        self.choose(*(choices[name] for name in CHOICES))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in CHOICES:  # which an older pickle lacks
            self._buffers.setdefault(name, None)

    def _group(self) -> ProcessGroup | None:
        """Return the processes whose batches `'bn'` pools; None for this one alone."""
        return None


def _places(chosen: tuple[Choice, Choice]) -> list[int]:
    """Return the indices of the scopes that a choice names, in their order."""
    return sorted({*chosen[0], *chosen[1]})
