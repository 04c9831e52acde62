"""Checks that the data of a config are there and complete, before anything is built."""
