"""What a run has learned, as tables and pictures."""
