"""tensorflow.python.autograph.utils: small helpers."""
