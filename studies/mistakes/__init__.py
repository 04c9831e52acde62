"""Good configs and data, mistakes in them, and what our tools make of each."""
