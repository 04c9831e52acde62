"""Converting checkpoints to SN, in files or while loading, and comparing them with models."""
