"""Hooks of mmengine for runs of models with SN."""
