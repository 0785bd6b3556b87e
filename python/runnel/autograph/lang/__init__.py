"""tensorflow.python.autograph.lang: what functions that are converted may call."""
