"""tensorflow.python.autograph.impl: conversions of functions."""
