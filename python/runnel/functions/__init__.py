"""Types of functions and of their arguments, which decide when tf.function traces again; what functions capture."""
