"""Predicting on images with a trained model, by the inferencers of the toolboxes."""
