"""Conversions: BatchNorm into SN, its calibration, SN into SyncSN and back, images into video."""
