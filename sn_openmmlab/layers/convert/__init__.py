"""Conversions: BatchNorm into SN, its calibration, and SN into SyncSN and back."""
