"""The weight initializer `SNPretrained`."""

from typing import Any

from mmengine.logging import print_log
from mmengine.model import PretrainedInit, is_model_wrapper, update_init_info
from mmengine.runner.checkpoint import load_state_dict
from torch import Tensor, nn

from sn_openmmlab.checkpoints.files.fetching import fetch_checkpoint
from sn_openmmlab.checkpoints.pretrained_checks import check_weights
from sn_openmmlab.checkpoints.pretrained_weights import weights_for
from sn_openmmlab.errors import UsageError
from sn_openmmlab.layers.convert.from_batch_norm import BATCH_RATIO


class SNPretrained(PretrainedInit):
    """Start a module with SN from a checkpoint, which is converted while it is loaded.

    It takes the place of `Pretrained` in an `init_cfg`. The checkpoint may hold:

    - the same network with BatchNorm, of any kind: each SN layer takes over the BatchNorm in its
      place (`bn1` for `sn1`);
    - the same network with SN; ratios are repeated where the module has more groups of them
      (`num_ratio_groups`);
    - one of the authors' ImageNet ResNets with SN, in any layout that they released.

    Files are read without running code that they may hold. Weights that the module does not need,
    such as a classifier, are left out. The log names them, and the weights that the file lacks.

    Args:
        checkpoint: A file, a URL, or another name that MMEngine knows, such as
            `torchvision://resnet50` or `open-mmlab://resnet50_v1c`.
        batch_ratio: The importance ratio at which `'bn'` starts if the file has BatchNorm, in
            (0, 1]. The other scopes share the rest equally. Frozen layers start at 1, so they go
            on as the BatchNorm that they were.
        prefix: What the names of the part to load start with, such as `'backbone.'`. By default it
            is found out.
        map_location: As in `torch.load`.
        strict: Whether the file must hold all convolutions and norm layers of the module. If not,
            those that it lacks keep their initial values, and an SN layer takes over what the file
            has in its place, such as γ and β of GroupNorm. The log names them.

    Raises:
        UsageError: There is no `checkpoint`. When it is called: the file cannot be read, it does
            not fit the module, or its values are broken. A file does not fit if it leaves
            convolutions or norm layers unfilled, has other shapes (except for other classes in
            the last layers), or has more blocks; if its SN was trained with other scopes, another
            correction, or groups of ratios that cannot be divided into those of the module; or if
            it has BatchNorm for a layer whose scopes lack `'bn'`. It is also an error if a later
            `init_cfg` of the module would overwrite the weights.

    Examples:
        A backbone that starts from BatchNorm weights:

        ```python
        model = dict(
            backbone=dict(
                norm_cfg=dict(type='SN'),
                init_cfg=dict(type='SNPretrained', checkpoint='torchvision://resnet50')))
        ```

        A whole detector that starts from one with BatchNorm, in place of `load_from`:

        ```python
        model = dict(
            init_cfg=dict(type='SNPretrained', checkpoint='faster_rcnn_r50_fpn_1x_coco.pth'),
            backbone=dict(norm_cfg=dict(type='SN'), init_cfg=None))
        ```
    """

    def __init__(
        self,
        checkpoint: str | None = None,
        batch_ratio: float = BATCH_RATIO,
        prefix: str | None = None,
        map_location: Any = 'cpu',
        strict: bool = True,
    ) -> None:
        # Python's own message would not name the config that mmengine builds it from.
        if not checkpoint:
            raise UsageError(
                'an init_cfg has no checkpoint: name the file to start from, as in '
                "init_cfg=dict(type='SNPretrained', checkpoint=FILE)."
            )
        super().__init__(checkpoint, prefix, map_location)
        self.batch_ratio = batch_ratio
        self.strict = strict

    def __call__(self, module: nn.Module) -> None:
        """Load the weights into `module`.

        Raises:
            UsageError: See above. Then nothing was loaded.
        """
        weights = self.weights(module)
        _initialize_children(module)
        print_log(f'load model from: {self.checkpoint}', logger='current')
        load_state_dict(module, weights, strict=False, logger='current')
        if hasattr(module, '_params_init_info'):
            update_init_info(module, init_info=self._get_init_info())
        # MMPretrain's ResNets set γ of their last norms to 0 unless they find this type.
        module.init_cfg = dict(type='Pretrained', checkpoint=self.checkpoint, prefix=self.prefix)

    def weights(self, module: nn.Module) -> dict[str, Tensor]:
        """Return the weights that `module` would get, by its names, without loading them.

        Raises:
            UsageError: See above.
        """
        _check_order(module)
        checkpoint = fetch_checkpoint(self.checkpoint, self.map_location)
        try:
            weights = weights_for(module, checkpoint, self.prefix, self.batch_ratio, self.strict)
            check_weights(module, weights, self.strict)
        except UsageError as error:
            raise UsageError(
                f'{self.checkpoint} cannot start {type(module).__name__}: {error}'
            ) from error
        return weights


def _check_order(module: nn.Module) -> None:
    """Raise UsageError if another initializer of the module runs later."""
    cfgs = getattr(module, 'init_cfg', None)
    types = [cfg['type'] for cfg in cfgs] if isinstance(cfgs, list | tuple) else []
    ours = [kind in (SNPretrained, SNPretrained.__name__) for kind in types]
    # MMEngine runs its own Pretrained last, wherever it stands.
    plain = [kind for kind in types if kind in (PretrainedInit, 'Pretrained')]
    if any(ours) and not (ours[-1] and not plain):
        after = 'Pretrained' if plain else types[-1]
        raise UsageError(
            f'the init_cfg of {type(module).__name__} has {after} after SNPretrained, which would '
            'overwrite its weights: put SNPretrained last, without Pretrained.'
        )


def _initialize_children(module: nn.Module) -> None:
    """Let the children initialize themselves now; MMEngine would do it later and overwrite."""
    for child in module.children():
        if is_model_wrapper(child) and not hasattr(child, 'init_weights'):
            child = child.module
        if hasattr(child, 'init_weights') and not getattr(child, 'is_init', False):
            child.init_weights()
            child.is_init = True
