"""Checkpoint files: reading them without running what they may hold."""
