"""One sentence for what goes wrong in a run, and nothing half-written."""
