"""Checkpoint files: read without running what they may hold, written whole or not at all."""
