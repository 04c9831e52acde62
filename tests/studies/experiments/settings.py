"""Settings of configs, for comparing them."""


def without_norms(settings: object) -> object:
    """Return settings as plain containers, without each `norm_cfg`."""
    if isinstance(settings, dict):
        return {k: without_norms(v) for k, v in settings.items() if k != 'norm_cfg'}
    return [without_norms(item) for item in settings] if isinstance(settings, list) else settings
