"""Transformations that are not specific to TensorFlow."""
