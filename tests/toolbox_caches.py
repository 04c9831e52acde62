"""Have mmengine remember what takes long and comes out the same each time."""

from contextlib import suppress
from functools import cache


def find_configs_once() -> None:
    """Find each config of a toolbox once: finding one reads the toolbox's whole model zoo."""
    with suppress(ImportError):
        from mmengine.config import config

        config._get_external_cfg_path = cache(config._get_external_cfg_path)


def format_configs_once() -> None:
    """Format a config once, not each of the five times that a training writes it."""
    with suppress(ImportError):
        from yapf.yapflib import yapf_api

        format_code, formatted = yapf_api.FormatCode, {}

        def remember(text: str, **options: object) -> tuple[str, bool]:
            if text not in formatted:
                formatted[text] = format_code(text, **options)
            return formatted[text]

        yapf_api.FormatCode = remember
