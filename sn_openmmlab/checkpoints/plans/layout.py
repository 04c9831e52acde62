"""What the package has to know about a layout of checkpoint files."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """How the files of one kind name and shape their weights.

    Attributes:
        name: As a converted file records it.
        of_authors: Whether the authors trained these weights, that is with `correction=1`.
        from_batch_norm: Whether the network has BatchNorm.
        config: The config of the model that a converted file is for, in the folder `configs`.
            Empty if the weights themselves tell the model.
        model: What messages call that model.
    """

    name: str
    of_authors: bool = False
    from_batch_norm: bool = False
    config: str = ''
    model: str = ''
