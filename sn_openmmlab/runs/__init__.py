"""Runs of the toolboxes: a config file and a command line's wishes become an mmengine runner."""
