"""The weights that a model predicts with."""

from collections.abc import Callable

from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.runner import load_checkpoint
from torch import nn

from sn_openmmlab.prediction.meta import dataset_meta
from sn_openmmlab.runs.weights.check import check_trained


def load_trained(model: nn.Module, config: Config) -> None:
    """Load the checkpoint of a config into its model, and set ``model.dataset_meta``.

    Args:
        model: just built.
        config: of `sn_openmmlab.prediction.config.inference_config`.

    Raises:
        UsageError: the checkpoint does not fit the model.
    """
    check_trained(model, config.load_from)
    checkpoint = load_checkpoint(model, config.load_from, map_location='cpu')
    model.dataset_meta = dataset_meta(checkpoint, model, config)


class TrainedWeights:
    """Makes an inferencer of mmengine load the checkpoint that its config names, once checked.

    It goes before the inferencer among the bases of a class. The config is one of
    `sn_openmmlab.prediction.config.inference_config`, and ``weights`` stays None.
    """

    def _load_weights_to_model(
        self, model: nn.Module, checkpoint: dict | None, cfg: Config
    ) -> None:
        load_trained(model, cfg)

    def _init_collate(self, cfg: Config) -> Callable:
        # mmengine looks for it in a registry that the toolboxes lack, and warns of that.
        return pseudo_collate
