"""Checkpoint files: read without running code in them, and written whole or not at all."""
