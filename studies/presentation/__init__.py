"""Figures, Markdown tables and machine descriptions of the studies."""
