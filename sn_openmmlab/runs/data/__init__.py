"""Checking that the data a config names are there and whole, before anything is built."""
