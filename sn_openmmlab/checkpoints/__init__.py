"""Turning checkpoints into ones with SN, in files or while loading, and holding them to models."""
