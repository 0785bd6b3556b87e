"""tensorflow.python.autograph.pyct: tools that turn Python functions into other Python functions."""
